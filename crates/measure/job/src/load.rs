//! Runs the load once against ready servers and measures it.
//!
//! In: a [`LoadSpec`]. Out: a [`LoadOutcome`] with the metrics of the load's output, the CPU time
//! of both sides, write amplification and the proof of acceleration. While the load runs, the
//! servers are sampled and the timeout and interrupts are handled.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use saiga_experiment::acceleration;
use saiga_experiment::file::Kind;
use saiga_experiment::two_hosts::{GATEWAY_CPU, SERVER_HOST_CPU};
use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};
use saiga_hosts::Hosts;
use saiga_process::child::{Child, CommandLine, Ended, Waited};
use saiga_process::log;

use crate::amplification::Amplification;
use crate::client::{self, Output};
use crate::record::Times;
use crate::running::Processes;
use crate::time_series::{ProbedProcess, TimeSeries};

/// Interval between two samples of the servers while the load runs.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);
/// [`PAUSE`] for loads that may end within a second.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// A load and how to measure it.
pub(crate) struct LoadSpec<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) line: CommandLine,
    /// The folder for the output of the load.
    pub(crate) dir: &'a Path,
    /// Timeout; `None` for loads without one.
    pub(crate) limit: Option<Duration>,
    /// The process whose counters must show that the load is accelerated; `None` if the run needs
    /// no proof.
    pub(crate) probed: Option<ProbedProcess<'a>>,
    /// The drives to sample; `None` if the file names none.
    pub(crate) amplification: Option<Amplification>,
}

/// The result of a load that ended by itself.
pub(crate) struct LoadOutcome {
    pub(crate) measured: Measured,
    /// Connections without an answer at the end.
    pub(crate) unanswered: u64,
}

/// Runs a load and parses its output.
///
/// # Errors
/// Fails if the load or a server cannot be started or ends early, after the timeout, and after an
/// interrupt.
pub(crate) fn run(
    spec: LoadSpec<'_>,
    mut processes: Processes<'_>,
    conditions: &Conditions<'_>,
) -> Result<LoadOutcome, Failure> {
    let LoadSpec {
        kind,
        line,
        dir,
        limit,
        probed,
        mut amplification,
    } = spec;
    let (out, err) = (dir.join("client.out"), dir.join("client.log"));
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let (stdout, stderr) = files.map_err(Failure::impossible)?;
    let meter = Meter::start(conditions).map_err(Failure::impossible)?;
    let mut series = TimeSeries::default();
    let before = series.sample(&processes)?;
    let began = Instant::now();
    let mut client = line
        .spawn("the package of the load", stdout, stderr)
        .map_err(Failure::impossible)?;
    let sampling = Sampling {
        limit,
        probed,
        series: &mut series,
        amplification: amplification.as_mut(),
    };
    let ended = await_end(&mut client, &mut processes, sampling, conditions)?;
    let elapsed = began.elapsed();
    let after = series.sample(&processes);
    let written = amplification.map(Amplification::end);
    if let Some(report) = processes.exit_report() {
        return Err(Failure::run(report));
    }
    if !client::has_measured(kind, ended.status.code()) {
        return Err(ended_early(&ended, &err, &out));
    }
    let server_cpu = after?.saturating_sub(before);
    let children_s = server_cpu.as_secs_f64() + ended.cpu.as_secs_f64();
    let used = meter.stop(children_s).map_err(Failure::impossible)?;
    let bytes = fs::read(&out).map_err(Failure::impossible)?;
    let output = client::read(kind, &String::from_utf8_lossy(&bytes)).map_err(Failure::run)?;
    let mut metrics = figures(&output, &series, processes.hosts.as_deref());
    metrics.extend(used.metrics());
    for (name, cpu) in [("server_cpu_s", server_cpu), ("client_cpu_s", ended.cpu)] {
        let seconds = used.with_interrupts(cpu).as_secs_f64();
        metrics.insert(name.to_owned(), seconds);
    }
    let mut detail = output.detail;
    let unsampled = written.and_then(|written| match written {
        Ok(written) => {
            metrics.extend(written.metrics);
            detail.get_or_insert_default().series.push(written.series);
            None
        }
        Err(error) => Some(error.to_string()),
    });
    let mut measured = Measured {
        seconds: output.seconds.unwrap_or(elapsed.as_secs_f64()),
        metrics,
        foreign_cpu_s: used.foreign_s,
        window_s: used.window_s,
        invalid: output.rejected,
        detail,
    };
    add_proof(&mut measured, probed, &series, output.times.as_ref());
    measured.invalid = measured.invalid.or(unsampled);
    Ok(LoadOutcome {
        measured,
        unanswered: output.unanswered,
    })
}

/// Adds the share of accelerated bytes, and rejects a run that was not accelerated. The measured
/// interval counts, or the whole load if its output does not contain the interval.
fn add_proof(
    measured: &mut Measured,
    probed: Option<ProbedProcess<'_>>,
    series: &TimeSeries,
    times: Option<&Times>,
) {
    if let Some(probed) = probed {
        let moved = match times {
            Some(times) => series.connections.moved_within(&times.measured),
            None => series.connections.moved(),
        };
        acceleration::judge(measured, moved, 0, probed.connections);
    }
}

/// The failure of a load that ended without figures, with its last lines of output.
fn ended_early(ended: &Ended, err: &Path, out: &Path) -> Failure {
    let lines = [err, out].map(log::last_lines);
    let lines = lines.into_iter().find(|lines| lines != "nothing");
    let (status, lines) = (ended.status, lines.unwrap_or_default());
    Failure::run(format!("the load ended with {status}: {lines}"))
}

/// The figures of the output. If the output contains the measured interval, the servers' CPU time
/// per operation in this interval is added.
fn figures(output: &Output, series: &TimeSeries, hosts: Option<&Hosts>) -> BTreeMap<String, f64> {
    let mut metrics = output.metrics.clone();
    let Some(times) = &output.times else {
        return metrics;
    };
    // A gateway on the client's host is part of the client.
    let far_s = series.far_gateway_used_within(&times.measured);
    if let Some(client) = metrics.remove("client_cpu_us_per_op")
        && let Some(far_s) = far_s
    {
        let far = far_s * 1e6 / times.transactions.max(1.0);
        metrics.insert("client_cpu_us_per_op".to_owned(), client + far);
    }
    if hosts.is_some() {
        let client = metrics.get("client_cpu_us_per_op").copied();
        metrics.extend(figures_of_hosts(client, series, times));
    }
    let used = series.used_within(&times.measured);
    if let Some(used) = used.filter(|_| times.transactions > 0.0) {
        // If the kernel does not include interrupts in the CPU time of processes, both sides get
        // their share of the interrupts.
        let with_interrupts = 1.0 + series.interrupts_beside(&times.measured);
        let server = used * 1e6 / times.transactions * with_interrupts;
        metrics.insert("server_cpu_us_per_op".to_owned(), server);
        if let Some(client) = metrics.get("client_cpu_us_per_op") {
            let client = client * with_interrupts;
            metrics.insert("client_cpu_us_per_op".to_owned(), client);
            metrics.insert("total_cpu_us_per_op".to_owned(), server + client);
        }
    }
    metrics
}

/// CPU time per operation of the gateway, if there is one, and of the server's host. `client` is
/// that of the client.
fn figures_of_hosts(client: Option<f64>, series: &TimeSeries, times: &Times) -> Vec<(String, f64)> {
    let measured = &times.measured;
    let per_op = |seconds: f64| seconds * 1e6 / times.transactions;
    // The interrupts of both hosts are part of it; the client's share of them is not known.
    let host = series.host_used_within(measured).zip(client);
    let host = host.map(|(busy_s, client)| (per_op(busy_s) - client).max(0.0));
    let gateway = series
        .gateway_used_within(measured)
        .map(|cpu_s| per_op(cpu_s) * (1.0 + series.interrupts_beside(measured)));
    let named = [(SERVER_HOST_CPU, host), (GATEWAY_CPU, gateway)];
    let known = named.into_iter().filter(|_| times.transactions > 0.0);
    known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// The samples to take while a load runs, and its timeout.
struct Sampling<'a> {
    limit: Option<Duration>,
    probed: Option<ProbedProcess<'a>>,
    series: &'a mut TimeSeries,
    amplification: Option<&'a mut Amplification>,
}

/// Waits until the load ends, and takes samples at regular intervals.
fn await_end(
    client: &mut Child,
    processes: &mut Processes<'_>,
    sampling: Sampling<'_>,
    conditions: &Conditions<'_>,
) -> Result<Ended, Failure> {
    let Sampling {
        limit,
        probed,
        series,
        mut amplification,
    } = sampling;
    let began = Instant::now();
    let usual = probed.map_or(PAUSE, |probed| probed.pause);
    loop {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let pause = left.map_or(usual, |left| left.min(usual));
        match client
            .wait(pause, conditions.interrupt)
            .map_err(Failure::impossible)?
        {
            Waited::Ended(ended) => return Ok(ended),
            Waited::Interrupted => {
                client.stop().map_err(Failure::impossible)?;
                return Err(Failure::Interrupted);
            }
            Waited::TimeOver => {
                if let Some(limit) = limit.filter(|limit| began.elapsed() >= *limit) {
                    client.kill().map_err(Failure::impossible)?;
                    return Err(Failure::run(format!(
                        "the load did not end within {} s",
                        limit.as_secs_f64()
                    )));
                }
                if let Some(report) = processes.exit_report() {
                    client.kill().map_err(Failure::impossible)?;
                    return Err(Failure::run(report));
                }
                series.sample(processes)?;
                if let Some(amplification) = amplification.as_deref_mut() {
                    amplification.sample_if_due();
                }
                if let Some(probed) = probed {
                    series.probe(probed, client.pid());
                }
            }
        }
    }
}
