//! One run of a fail-over: kills the master while a writer process writes, and reads its report.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};
use saiga_process::child::{Child, CommandLine, Ended, Waited};
use saiga_process::log::last_line;

use crate::acceleration::{ChannelWatch, OtherConnections};
use crate::arm::{Endpoint, RedisArm};
use crate::fleet::Fleet;
use crate::load::RedisLoad;
use crate::server::PACKAGE;
use crate::topology::Role;
use crate::writer::WriteReport;

/// Timeout of the writer; the parent waits [`GRACE`] longer.
const WRITER_LIMIT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(5);
/// Number of writes before the master is killed; by then every connection has a steady rate.
const WRITES_BEFORE: u64 = 5000;
/// Every writer connects to the old and the new master.
const MASTERS: u32 = 2;
/// Interval between two checks of the writer's progress.
const PAUSE: Duration = Duration::from_millis(5);

/// The command line of the writer; `program` is the path of this program.
pub(crate) fn writer_line(
    arm: &RedisArm,
    program: &Path,
    sentinels: &[String],
    load: &RedisLoad,
) -> CommandLine {
    let mut args = vec!["redis-writer".to_owned()];
    for port in sentinels {
        args.extend(["--sentinel".to_owned(), port.clone()]);
    }
    let number = |name: &str, value: String| [name.to_owned(), value];
    args.extend(number("--connections", load.clients.to_string()));
    args.extend(number("--value-bytes", load.value_bytes.to_string()));
    args.extend(number("--limit-s", WRITER_LIMIT.as_secs().to_string()));
    arm.command(&program.display().to_string(), args)
}

/// Runs a fail-over; with a `probe` the writer must prove that it was accelerated.
pub(crate) fn run(
    fleet: &mut Fleet,
    arm: &RedisArm,
    program: &Path,
    load: &RedisLoad,
    cpus: &[usize],
    conditions: &Conditions<'_>,
    probe: Option<&dyn AccelerationProbe>,
) -> Result<Measured, Failure> {
    let folder = fleet.master().dir.path().to_owned();
    let (out, err) = (folder.join("writer.json"), folder.join("writer.log"));
    let mut line = writer_line(arm, program, &sentinels(fleet), load);
    line.cpus = cpus.to_vec();
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let (stdout, stderr) = files.map_err(Failure::impossible)?;
    let meter = Meter::start(conditions).map_err(Failure::impossible)?;
    let before = fleet.cpu_time().map_err(Failure::impossible)?;
    let began = Instant::now();
    let mut writer = line
        .spawn(PACKAGE, stdout, stderr)
        .map_err(Failure::impossible)?;
    await_writes(fleet, &mut writer, conditions, &err)?;
    // The writer is sampled instead of the servers, whose counters include the links of replicas.
    let connections = load.clients.saturating_mul(MASTERS);
    let mut channels = probe.map(|probe| {
        ChannelWatch::new(probe, &[writer.pid()], connections, OtherConnections::NONE)
    });
    fleet.members[0].kill().map_err(Failure::impossible)?;
    let ended = await_end(&mut writer, channels.as_mut(), conditions)?;
    let seconds = began.elapsed().as_secs_f64();
    let servers = fleet
        .cpu_time()
        .map_err(Failure::impossible)?
        .saturating_sub(before);
    let children_s = (servers + ended.cpu).as_secs_f64();
    let used = meter.stop(children_s).map_err(Failure::impossible)?;
    let text = fs::read_to_string(&out).unwrap_or_default();
    let report = WriteReport::from_json(&text)
        .ok_or_else(|| Failure::run(format!("the writer failed: {}", last_line(&err))))?;
    if !report.switched {
        let watcher = fleet.members.iter().find(|one| one.role == Role::Sentinel);
        let log = watcher.map(|one| one.last_lines()).unwrap_or_default();
        return Err(Failure::run(format!(
            "no new master served within {} s after the old one was killed; {log}",
            WRITER_LIMIT.as_secs()
        )));
    }
    let mut measured = Measured {
        seconds,
        metrics: metrics(&report),
        foreign_cpu_s: used.foreign_s,
        window_s: used.window_s,
        invalid: None,
        detail: None,
    };
    if let Some(mut channels) = channels {
        let wrote = Duration::try_from_secs_f64(report.wrote_s).unwrap_or(WRITER_LIMIT);
        channels.end_at(began + wrote.min(WRITER_LIMIT + GRACE));
        channels.judge(&mut measured, load);
    }
    Ok(measured)
}

fn sentinels(fleet: &Fleet) -> Vec<String> {
    let watchers = fleet
        .members
        .iter()
        .filter(|one| one.role == Role::Sentinel);
    watchers
        .filter_map(|one| match &one.endpoint {
            Endpoint::Tcp(port) => Some(port.clone()),
            Endpoint::Remote(_) | Endpoint::Unix(_) => None,
        })
        .collect()
}

/// Waits for the end of the writer, and samples its counters.
fn await_end(
    writer: &mut Child,
    mut channels: Option<&mut ChannelWatch<'_>>,
    conditions: &Conditions<'_>,
) -> Result<Ended, Failure> {
    let (began, limit) = (Instant::now(), WRITER_LIMIT + GRACE);
    loop {
        let left = limit.saturating_sub(began.elapsed());
        let pause = channels.as_mut().map_or(left, |channels| {
            channels.sample();
            channels.pause().min(left)
        });
        let waited = writer.wait(pause, conditions.interrupt);
        match waited.map_err(Failure::impossible)? {
            Waited::Ended(ended) => return Ok(ended),
            Waited::Interrupted => return Err(Failure::Interrupted),
            Waited::TimeOver if began.elapsed() < limit => {}
            Waited::TimeOver => {
                return Err(Failure::run(format!(
                    "the writer did not end within {} s",
                    limit.as_secs()
                )));
            }
        }
    }
}

/// Waits until the writer has written enough, so that the kill happens during its writes.
fn await_writes(
    fleet: &Fleet,
    writer: &mut Child,
    conditions: &Conditions<'_>,
    err: &Path,
) -> Result<(), Failure> {
    let began = Instant::now();
    let written = || -> io::Result<u64> {
        let size = fleet.master().control()?.ask(&[b"DBSIZE"])?;
        Ok(size.parse().unwrap_or(0))
    };
    while began.elapsed() < GRACE {
        if written().map_err(Failure::impossible)? >= WRITES_BEFORE {
            return Ok(());
        }
        let waited = writer.wait(PAUSE, conditions.interrupt);
        match waited.map_err(Failure::impossible)? {
            Waited::TimeOver => {}
            Waited::Interrupted => return Err(Failure::Interrupted),
            Waited::Ended(_) => {
                return Err(Failure::run(format!(
                    "the writer ended: {}",
                    last_line(err)
                )));
            }
        }
    }
    Err(Failure::run(format!(
        "the writer did not write {WRITES_BEFORE} keys within {} s",
        GRACE.as_secs()
    )))
}

fn metrics(report: &WriteReport) -> BTreeMap<String, f64> {
    let WriteReport {
        acknowledged,
        lost,
        without_service_s,
        switched: _,
        wrote_s: _,
    } = *report;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let [acknowledged, lost] = [acknowledged, lost].map(|count| count as f64);
    BTreeMap::from([
        ("without_service_s".to_owned(), without_service_s),
        ("acknowledged_writes".to_owned(), acknowledged),
        ("lost_writes".to_owned(), lost),
    ])
}
