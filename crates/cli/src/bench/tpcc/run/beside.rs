//! The host and the databases during a run: which counters are read, and what the record gets.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use saiga_sampler::status::StatusSource;
use saiga_sampler::summary::{CpuSeconds, Summary};
use saiga_sampler::{BenchmarkSqlSink, Config, Device, Group};
use saiga_tpcc::counters::DatabaseStatus;
use saiga_tpcc::driver::connection::Sessions;
use saiga_tpcc::props::Engine;
use saiga_tpcc::results::Record;
use saiga_tpcc::target::Target;

use super::options::Options;
use crate::exit;
use crate::host::{Host, HostSamples, Recording, device};
use saiga_process::sockets;

/// Number of the run in BenchmarkSQL's files, as in its `runInfo.csv`.
const RUN: u32 = 1;

/// The sources of counters during a run.
#[derive(Default)]
pub(super) struct CounterSources {
    sources: Vec<Box<dyn StatusSource>>,
    servers: Vec<u32>,
    directories: Vec<PathBuf>,
    devices: Vec<Device>,
    /// Whether a props file enables the files of BenchmarkSQL's collector.
    collects: bool,
}

impl CounterSources {
    /// Adds a database. Sources that cannot be read are reported and left out.
    pub(super) fn add(&mut self, target: &Target) {
        let number = 1 + self.sources.len();
        match DatabaseStatus::open(target.sessions.clone(), number) {
            Ok(source) => {
                let source = source.map(|source| Box::new(source) as Box<dyn StatusSource>);
                self.sources.extend(source);
            }
            Err(error) => exit::say(&format!(
                "{}: its counters are missing in the result: {error}",
                target.name()
            )),
        }
        self.servers.extend(server_of(&target.sessions));
        let data = target.props.hints.data.iter();
        self.directories
            .extend(data.filter(|data| data.is_dir()).cloned());
        let run = target.props.run.iter();
        let words: Vec<&str> = run
            .flat_map(|run| &run.devices)
            .map(String::as_str)
            .collect();
        self.collects |= !words.is_empty();
        match Device::list(&words.join(" ")) {
            Ok(devices) => self.add_devices(devices),
            Err(unknown) => exit::say(&format!("{}: osCollectorDevices: {unknown}", target.name())),
        }
    }

    /// Adds the server and devices that the calling process gave.
    pub(super) fn add_named(&mut self, options: &Options) {
        let pids = options.server_pid.iter().copied();
        for pid in pids {
            if !self.servers.contains(&pid) {
                self.servers.push(pid);
            }
        }
        let devices = options.device.iter().map(|name| device(name));
        self.add_devices(devices.collect());
    }

    fn add_devices(&mut self, devices: Vec<Device>) {
        for device in devices {
            if !self.devices.contains(&device) {
                self.devices.push(device);
            }
        }
    }

    /// Starts sampling; `None`, with a message, if that is not possible.
    pub(super) fn begin<'h>(self, host: &'h Host, folder: Option<&Path>) -> Option<Recording<'h>> {
        let group = |name: &str, pids: Vec<u32>| Group {
            name: name.to_owned(),
            pids,
        };
        let config = Config {
            groups: vec![
                group("server", self.servers),
                group("client", vec![std::process::id()]),
            ],
            devices: self.devices,
            directories: self.directories,
            sources: self.sources,
            ..Config::default()
        };
        let sink = folder
            .filter(|_| self.collects)
            .map(|folder| BenchmarkSqlSink {
                directory: folder.join("data"),
                run: RUN,
            });
        match Recording::begin(host, config, folder, sink) {
            Ok(recording) => Some(recording),
            Err(error) => {
                exit::say(&format!("the host is not sampled: {error:#}"));
                None
            }
        }
    }
}

/// Stops sampling; times count from the start of the run.
pub(super) fn end(recording: Option<Recording<'_>>, start: Instant) -> Option<HostSamples> {
    match recording?.end(start) {
        Ok(seen) => {
            for warning in &seen.summary.warnings {
                exit::say(warning);
            }
            Some(seen)
        }
        Err(error) => {
            exit::say(&format!("the samples of the host are lost: {error:#}"));
            None
        }
    }
}

/// Adds the samples to the record of a run.
pub(super) fn add_to(record: &mut Record, seen: HostSamples) {
    for file_system in &seen.summary.file_systems {
        record.run.metrics.extend(file_system.levels());
    }
    record.run.metrics.extend(figures(&seen.summary));
    record
        .run
        .detail
        .get_or_insert_default()
        .series
        .extend(seen.series);
}

/// Metrics that the record has as mean and 95th percentile, with their printed names.
const SUMMARISED: [(&str, &str); 6] = [
    ("cpu_user_percent", "user"),
    ("cpu_nice_percent", "nice"),
    ("cpu_system_percent", "system"),
    ("cpu_iowait_percent", "waiting for disks"),
    ("steal_percent", "stolen"),
    ("run_queue_tasks", "run queue"),
];

/// Summary of the measured interval as metrics of the run.
fn figures(summary: &Summary) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    if summary.rows == 0 {
        return all;
    }
    for (name, _) in SUMMARISED {
        let Some((metric, (what, unit))) = summary.metrics.get(name).zip(name.rsplit_once('_'))
        else {
            continue;
        };
        all.push((format!("host_{what}_mean_{unit}"), metric.mean));
        all.push((format!("host_{what}_p95_{unit}"), metric.p95));
    }
    let seconds = cpu_seconds(summary).into_iter();
    all.extend(seconds.map(|(whose, used_s)| (format!("host_{whose}_cpu_s"), used_s)));
    all
}

/// CPU time of the measured interval by process group.
fn cpu_seconds(summary: &Summary) -> Vec<(String, f64)> {
    let CpuSeconds {
        groups,
        sampler_s,
        others_s,
        busy_s: _,
        interrupts_s: _,
        steal_s,
        unknown_rows: _,
    } = &summary.cpu;
    let groups = groups.iter().map(|(name, used_s)| (name.clone(), *used_s));
    let rest = [
        ("others", others_s),
        ("sampler", sampler_s),
        ("stolen", steal_s),
    ];
    groups
        .chain(rest.map(|(name, used_s)| (name.to_owned(), *used_s)))
        .collect()
}

/// The summary as two lines of text; `None` if no row was measured.
pub(super) fn summary_text(summary: &Summary) -> Option<String> {
    if summary.rows == 0 {
        return None;
    }
    let metric = |&(name, word): &(&str, &str)| {
        let metric = summary.metrics.get(name)?;
        let unit = if name.ends_with("_percent") { " %" } else { "" };
        Some(format!(
            "{word} {:.1}{unit} ({:.1})",
            metric.mean, metric.p95
        ))
    };
    let metrics: Vec<String> = SUMMARISED.iter().filter_map(metric).collect();
    let seconds = cpu_seconds(summary).into_iter();
    let seconds: Vec<String> = seconds
        .map(|(whose, used_s)| format!("{whose} {used_s:.2}"))
        .collect();
    Some(format!(
        "Host, {:.0} s of it measured, mean (95th percentile): {}\nCPU seconds during the \
         measurement: {}",
        summary.seconds,
        metrics.join(", "),
        seconds.join(", ")
    ))
}

/// The process that listens where the terminals connect, if that is a port of this host.
fn server_of(sessions: &Sessions) -> Option<u32> {
    let url = &sessions.url;
    if sessions.options.socket.is_some() {
        return None;
    }
    let is_here = match url.host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => url.host.eq_ignore_ascii_case("localhost"),
    };
    (is_here && url.engine != Engine::Sqlite)
        .then(|| sockets::listener_at(url.port))
        .flatten()
}
