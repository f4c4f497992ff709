//! `saiga diagnose`: the bottleneck that holds now, with its evidence.
//!
//! The crate `saiga-diagnose` has the rules. This module collects their sources: files, and this
//! host while a load runs.

pub(crate) mod experiment;
mod hops;
mod live;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use saiga_diagnose::observation::load::Hop;
use saiga_diagnose::observation::{Gap, Observation};
use saiga_diagnose::source::capture::{self, Capture};
use saiga_diagnose::source::{load_csv, perf_stat};
use saiga_diagnose::{page, verdict};
use saiga_document::{html, text};
use saiga_experiment::result::ExperimentResult;
use saiga_process::sockets::listener_at;
use saiga_redis::counters::RedisCounters;
use saiga_sampler::status::StatusSource;
use saiga_topology::latency::Latency;
use saiga_tpcc::counters::DatabaseStatus;

use crate::outfile;
use crate::tune::configure::ServerName;
use crate::tune::running::{self, At};

/// Length of an observation without `--for`.
const USUAL: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without FILE and --hop, this host is observed for --for while its load runs, with the server of \
--pid or --port if one is given. A FILE is a packet capture (pcap, pcapng) of MySQL, PostgreSQL, \
Redis or HTTP, in which --port chooses the server; the directory or result.json of an experiment \
(`saiga compare --out`); or the load at one place as CSV: the columns time, N (clients), X (requests \
per second) and R_ms (response time), in any order. Several places are hops, as captures or CSV: \
--hop client=a.csv --hop client/database=b.csv. The clocks of captures are compared by the packets \
that are in both.\n\
One bottleneck hides the others: diagnose again after each change.\n\
Exit status: 1 when a bottleneck was found, 2 when the sources cannot be read.")]
pub(crate) struct Args {
    /// A packet capture, an experiment, or the load as CSV
    #[arg(value_name = "FILE", conflicts_with = "hop")]
    file: Option<PathBuf>,
    /// The load at a hop, outermost first; PARENT/NAME is a hop that PARENT calls
    #[arg(long, value_name = "NAME=FILE", value_parser = hops::parse)]
    hop: Vec<hops::HopFile>,
    /// The arm of the experiment to judge (default: the one that it is about)
    #[arg(long, value_name = "NAME", requires = "file")]
    arm: Option<String>,
    /// Latencies of the machine's memory: the output of `saiga topology --latency --json`
    #[arg(long, value_name = "FILE")]
    latency: Option<PathBuf>,
    /// Hardware counters of the server under two placements, each as `perf stat -x, -o FILE` wrote
    /// them
    #[arg(long, num_args = 2, value_names = ["FILE", "FILE"])]
    counters: Vec<PathBuf>,
    /// The server to observe
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// The server that listens on this port of this host
    #[arg(long, value_name = "PORT", conflicts_with = "pid")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Also read the counters of this database system on the server (password: MYSQL_PWD,
    /// PGPASSWORD or REDISCLI_AUTH)
    #[arg(long, value_enum, value_name = "SYSTEM")]
    engine: Option<ServerName>,
    /// User to log in as (default: root or postgres)
    #[arg(long, value_name = "NAME", requires = "engine")]
    user: Option<String>,
    /// Unix socket to log in through
    #[arg(long, value_name = "PATH", requires = "engine")]
    socket: Option<String>,
    /// Also read the packets of the server while they pass, for the times of single requests (needs
    /// root)
    #[arg(long)]
    packets: bool,
    /// Length of the observation of this host (default: 30s)
    #[arg(long = "for", value_name = "TIME", value_parser = crate::length::length)]
    length: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write the verdict with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(html) = &args.html {
        outfile::check(html)?;
    }
    let mut observation = Observation::default();
    if let Some(path) = &args.file {
        add_file(path, args, &mut observation)?;
    }
    hops::add(&args.hop, args.port, &mut observation)?;
    observation.latency = args.latency.as_deref().map(latencies).transpose()?;
    for path in &args.counters {
        observation.counters.push(perf_stat::read(path)?);
    }
    let is_without_file = args.file.is_none() && args.hop.is_empty() && args.counters.is_empty();
    if is_without_file || is_live(args) {
        let pid = server(args)?;
        let status = status(args)?;
        let options = live::Options {
            pid,
            status,
            packets: args.packets,
            length: args.length.unwrap_or(USUAL),
        };
        live::observe(options, &mut observation)?;
    }
    let verdict = verdict::judge(&observation);
    let title = title(args, &observation);
    let origin = format!("Written by `saiga diagnose`, {}.", env!("SAIGA_VERSION"));
    let page = page::page(&observation, &verdict, &title, &origin);
    let output = if args.json {
        serde_json::to_string_pretty(&verdict)? + "\n"
    } else {
        text::render(&page, text::Style::plain())
    };
    std::io::stdout().write_all(output.as_bytes())?;
    if let Some(path) = &args.html {
        outfile::write(path, &html::render(&page))?;
    }
    let is_found = !verdict.findings.is_empty();
    Ok(ExitCode::from(u8::from(is_found)))
}

/// Whether an option asks for an observation of this host. With a file, `--port` is a port in it.
fn is_live(args: &Args) -> bool {
    let is_port = args.port.is_some() && args.file.is_none() && args.hop.is_empty();
    is_port || args.pid.is_some() || args.engine.is_some() || args.packets || args.length.is_some()
}

/// Adds a packet capture, an experiment or a load.
fn add_file(path: &Path, args: &Args, observation: &mut Observation) -> anyhow::Result<()> {
    match Source::read("load", path, args.port)? {
        Source::Capture(capture) => {
            let hop = capture.hop(&capture.name(), capture.start(), 0);
            observation.load.hops.push(hop);
            capture.add_events(observation);
        }
        Source::Experiment(result) => {
            let folder = if path.is_dir() {
                path
            } else {
                path.parent().unwrap_or(Path::new("."))
            };
            return experiment::add(&result, folder, args.arm.as_deref(), observation);
        }
        Source::Load(hop, mut gaps) => {
            observation.load.hops.push(hop);
            observation.gaps.append(&mut gaps);
        }
    }
    if args.arm.is_some() {
        bail!("--arm: {} is not an experiment", path.display());
    }
    Ok(())
}

/// What a file holds.
enum Source {
    Capture(Capture),
    Experiment(Box<ExperimentResult>),
    Load(Hop, Vec<Gap>),
}

impl Source {
    /// Reads a file of any of these kinds, which its first bytes tell. `name` is that of a hop from
    /// CSV.
    fn read(name: &str, path: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        if path.is_dir() {
            let result = experiment::read(&path.join("result.json"))?;
            return Ok(Self::Experiment(Box::new(result)));
        }
        let shown = path.display();
        let mut content = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        let mut start = Vec::new();
        (&mut content)
            .take(4)
            .read_to_end(&mut start)
            .with_context(|| format!("cannot read {shown}"))?;
        if start.first() == Some(&b'{') {
            return Ok(Self::Experiment(Box::new(experiment::read(path)?)));
        }
        // Commands such as tcpdump write captures to pipes, so the file is not read again.
        let whole = start.as_slice().chain(content);
        if capture::is_start(&start) {
            return Ok(Self::Capture(capture::read(path, whole, port)?));
        }
        let (hop, gaps) = load_csv::read(name, path, whole)?;
        Ok(Self::Load(hop, gaps))
    }
}

/// The latencies in the output of `saiga topology --latency --json`.
fn latencies(path: &Path) -> anyhow::Result<Latency> {
    #[derive(serde::Deserialize)]
    struct Output {
        latency: Latency,
    }
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let output: Output = serde_json::from_str(&text).with_context(|| {
        format!("{shown} has no latencies: write it with `saiga topology --latency --json`")
    })?;
    Ok(output.latency)
}

/// The counters of the database, if the user asks for them.
fn status(args: &Args) -> anyhow::Result<Option<Box<dyn StatusSource>>> {
    let Some(engine) = args.engine else {
        return Ok(None);
    };
    if engine == ServerName::Redis {
        let password = std::env::var("REDISCLI_AUTH").ok();
        let port = args.port.unwrap_or(usual_port(engine));
        let counters = RedisCounters::open(port, password)
            .with_context(|| format!("cannot read the counters of the Redis at port {port}"))?;
        return Ok(Some(Box::new(counters)));
    }
    let at = At::here(args.port, args.user.clone(), args.socket.clone());
    let sessions = running::sessions(engine.engine(), &at)?;
    let status = DatabaseStatus::open(sessions, 1)
        .map_err(|error| anyhow::anyhow!("cannot read the counters of the database: {error}"))?;
    Ok(status.map(|status| Box::new(status) as Box<dyn StatusSource>))
}

/// The port of a database system without `--port`.
fn usual_port(engine: ServerName) -> u16 {
    match engine {
        ServerName::Mysql | ServerName::Mariadb => 3306,
        ServerName::Postgres | ServerName::Opengauss => 5432,
        ServerName::Redis => 6379,
    }
}

/// The process of `--pid` or `--port`, or the one at the usual port of `--engine`, unless a Unix
/// socket says where it is.
fn server(args: &Args) -> anyhow::Result<Option<u32>> {
    let usual = args
        .engine
        .filter(|_| args.socket.is_none())
        .map(usual_port);
    match args.port.or(usual.filter(|_| args.pid.is_none())) {
        None => Ok(args.pid),
        Some(port) => listener_at(port).map(Some).with_context(|| {
            format!(
                "no process that listens on port {port} is visible; run this as root, or give --pid"
            )
        }),
    }
}

/// What was observed, in a few words.
fn title(args: &Args, observation: &Observation) -> String {
    match (&observation.process, &args.file) {
        (Some(process), _) => format!("Diagnosis of {} ({})", process.name, process.pid),
        (None, Some(file)) => format!("Diagnosis of {}", file.display()),
        (None, None) if !args.hop.is_empty() => {
            let names = args.hop.iter().map(|hop| hop.name.as_str());
            format!("Diagnosis of {}", names.collect::<Vec<_>>().join(", "))
        }
        (None, None) if !args.counters.is_empty() => "Diagnosis of two placements".to_owned(),
        (None, None) => "Diagnosis of this host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use saiga_diagnose::rule::Knob;

    #[test]
    fn every_setting_that_a_rule_names_is_a_knob_of_tune() {
        for knob in Knob::ALL {
            assert!(saiga_tune::knobs::knob(knob.id()).is_some(), "{knob:?}");
        }
    }
}
