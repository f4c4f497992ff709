//! Runs redis-benchmark once and parses its CSV.
//!
//! Throughput is the number of requests divided by the seconds that redis-benchmark reports. These
//! begin with its event loop, so process start and first connections do not count. With `--threads`
//! its threads notice the end only at a tick of 250 ms and spin until then. This tail, in which the
//! servers use no CPU time, is measured and subtracted. Latencies are those of the client, in steps
//! of 8 µs; with a pipeline they are those of a batch.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};
use saiga_process::child::{Child, CommandLine, Ended, Waited};
use saiga_process::cpu::Used;
use saiga_process::log::last_line;

use crate::acceleration::ChannelWatch;
use crate::fleet::Fleet;
use crate::server::PACKAGE;

/// Interval between samples of the servers' CPU time, for clients with threads.
const SAMPLE_PAUSE: Duration = Duration::from_millis(4);
/// Servers that used more CPU time than this between two samples count as busy.
const BUSY_CPU: Duration = Duration::from_micros(400);

/// Runs `line` once against `fleet`.
pub(crate) fn run(
    fleet: &mut Fleet,
    line: &CommandLine,
    operations: u64,
    threads: u32,
    conditions: &Conditions<'_>,
    channels: Option<&mut ChannelWatch<'_>>,
) -> Result<Measured, Failure> {
    let out = fleet.master().dir.path().join("client.csv");
    let err = fleet.master().dir.path().join("client.log");
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let (stdout, stderr) = files.map_err(Failure::impossible)?;
    let meter = Meter::start(conditions).map_err(Failure::impossible)?;
    let before = ServerCpu::so_far(fleet).map_err(Failure::impossible)?;
    let mut client = line
        .spawn(PACKAGE, stdout, stderr)
        .map_err(Failure::impossible)?;
    let (ended, idle_tail) = watch(&mut client, fleet, threads, conditions, channels)?;
    let after = ServerCpu::so_far(fleet);
    let log = || last_line(&err);
    if let Some(exit_report) = fleet.exit_report() {
        return Err(Failure::run(exit_report));
    }
    if !ended.status.success() {
        return Err(Failure::run(format!(
            "redis-benchmark ended with {}: {}",
            ended.status,
            log()
        )));
    }
    let server = after.map_err(Failure::impossible)?.since(before);
    let children_s = (server.total + server.far + ended.cpu).as_secs_f64();
    let used = meter.stop(children_s).map_err(Failure::impossible)?;
    let csv = fs::read_to_string(&out).map_err(Failure::impossible)?;
    let row = Row::parse(&csv)
        .ok_or_else(|| Failure::run(format!("redis-benchmark printed no figures: {}", log())))?;
    let operations = as_float(operations);
    let reported_s = operations / row.requests_per_s;
    let seconds = (reported_s - idle_tail.as_secs_f64()).max(reported_s * 0.01);
    let mut metrics = row.latencies;
    metrics.insert("throughput_ops_s".to_owned(), operations / seconds);
    metrics.extend(used.metrics());
    for (name, cpu_s) in cpu_seconds(fleet, server, ended.cpu, &used) {
        metrics.insert(name.to_owned(), cpu_s * 1e6 / operations);
    }
    Ok(Measured {
        seconds,
        metrics,
        foreign_cpu_s: used.foreign_s,
        window_s: used.window_s,
        invalid: None,
        detail: None,
    })
}

/// CPU time on the side of the servers.
#[derive(Debug, Clone, Copy)]
struct ServerCpu {
    /// All servers and the gateway.
    total: Duration,
    gateway: Duration,
    /// The gateway on the client's host, which is the client's.
    far: Duration,
}

impl ServerCpu {
    fn so_far(fleet: &Fleet) -> io::Result<Self> {
        Ok(Self {
            total: fleet.cpu_time()?,
            gateway: fleet.gateway_cpu_time()?,
            far: fleet.far_cpu_time()?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            gateway: self.gateway.saturating_sub(before.gateway),
            far: self.far.saturating_sub(before.far),
        }
    }
}

/// CPU seconds of a run, by the name of the metric per operation.
fn cpu_seconds(
    fleet: &Fleet,
    server: ServerCpu,
    client: Duration,
    used: &Used,
) -> Vec<(&'static str, f64)> {
    let ServerCpu {
        total,
        gateway,
        far,
    } = server;
    let client = client + far;
    let seconds = |cpu| used.with_interrupts(cpu).as_secs_f64();
    let (server_s, client_s) = (seconds(total), seconds(client));
    let mut all = vec![
        ("server_cpu_us_per_op", server_s),
        ("client_cpu_us_per_op", client_s),
        ("total_cpu_us_per_op", server_s + client_s),
    ];
    if let Some(hosts) = &fleet.hosts {
        all.extend(hosts.cpu_seconds(used, client, gateway));
    }
    all
}

/// Waits for the client. The second value is the time between the last request and the end of the
/// client; zero without threads.
fn watch(
    client: &mut Child,
    fleet: &Fleet,
    threads: u32,
    conditions: &Conditions<'_>,
    mut channels: Option<&mut ChannelWatch<'_>>,
) -> Result<(Ended, Duration), Failure> {
    let began = Instant::now();
    let (mut last_busy, mut last_sample) = (began, began);
    let mut cpu_before = Duration::ZERO;
    loop {
        let left = conditions.limit.saturating_sub(began.elapsed());
        let pause = match &channels {
            _ if threads > 1 => SAMPLE_PAUSE.min(left),
            Some(channels) => channels.pause().min(left),
            None => left,
        };
        match client
            .wait(pause, conditions.interrupt)
            .map_err(Failure::impossible)?
        {
            Waited::Ended(ended) if threads > 1 => return Ok((ended, last_busy.elapsed())),
            Waited::Ended(ended) => return Ok((ended, Duration::ZERO)),
            Waited::Interrupted => {
                stop(client)?;
                return Err(Failure::Interrupted);
            }
            Waited::TimeOver if began.elapsed() >= conditions.limit => {
                stop(client)?;
                let seconds = conditions.limit.as_secs();
                return Err(Failure::run(format!(
                    "redis-benchmark did not end within {seconds} s"
                )));
            }
            Waited::TimeOver => {
                let cpu = fleet.cpu_time().map_err(Failure::impossible)?;
                if cpu.saturating_sub(cpu_before) > BUSY_CPU {
                    last_busy = Instant::now();
                }
                cpu_before = cpu;
                if let Some(channels) = channels
                    .as_mut()
                    .filter(|channels| last_sample.elapsed() >= channels.pause())
                {
                    channels.sample();
                    last_sample = Instant::now();
                }
            }
        }
    }
}

fn stop(client: &mut Child) -> Result<(), Failure> {
    let stopped: io::Result<Ended> = client.kill();
    stopped.map(|_| ()).map_err(Failure::impossible)
}

/// The row of figures of `redis-benchmark --csv`.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) requests_per_s: f64,
    pub(crate) latencies: BTreeMap<String, f64>,
}

impl Row {
    /// Parses the header and the row below it; `None` if the throughput is missing or invalid.
    pub(crate) fn parse(csv: &str) -> Option<Self> {
        let mut lines = csv.lines().skip_while(|line| !line.starts_with("\"test\""));
        let (names, values) = (cells_of(lines.next()?), cells_of(lines.next()?));
        let figures: BTreeMap<&str, f64> = names
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        let requests_per_s = *figures.get("rps")?;
        if !(requests_per_s.is_finite() && requests_per_s > 0.0) {
            return None;
        }
        let kept = [
            ("avg_latency_ms", "latency_mean_us"),
            ("p50_latency_ms", "latency_p50_us"),
            ("p95_latency_ms", "latency_p95_us"),
            ("p99_latency_ms", "latency_p99_us"),
            ("max_latency_ms", "latency_max_us"),
        ];
        let in_us =
            |(theirs, ours): (&str, &str)| Some((ours.to_owned(), figures.get(theirs)? * 1e3));
        let latencies = kept.into_iter().filter_map(in_us).collect();
        Some(Self {
            requests_per_s,
            latencies,
        })
    }
}

fn cells_of(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim_matches('"')).collect()
}

fn as_float(operations: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let operations = operations as f64;
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                        \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";

    #[test]
    fn the_row_is_found_below_its_header() {
        let csv = format!(
            "WARNING: something\n{HEAD}\n\
             \"SET\",\"99601.60\",\"0.263\",\"0.072\",\"0.247\",\"0.375\",\"0.583\",\"2.367\"\n"
        );
        let row = Row::parse(&csv).unwrap();
        assert!((row.requests_per_s - 99_601.6).abs() < 1e-9);
        let names: Vec<&str> = row.latencies.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "latency_max_us",
                "latency_mean_us",
                "latency_p50_us",
                "latency_p95_us",
                "latency_p99_us"
            ]
        );
        assert!((row.latencies["latency_p99_us"] - 583.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_too_short_for_its_clock_gives_no_row() {
        let row = "\"GET\",\"inf\",\"0.068\",\"0.064\",\"0.071\",\"0.071\",\"0.071\",\"0.071\"";
        assert_eq!(Row::parse(&format!("{HEAD}\n{row}\n")), None);
        assert_eq!(Row::parse(HEAD), None);
        assert_eq!(Row::parse(""), None);
    }
}
