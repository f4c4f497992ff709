//! One run of the load against servers that are ready.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use saiga_experiment::acceleration;
use saiga_experiment::file::Kind;
use saiga_experiment::log;
use saiga_experiment::process::{Child, CommandLine, Ended, Waited};
use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};

use crate::amplification::Amplification;
use crate::client::{self, Output};
use crate::course::{Asked, Course};
use crate::record::Times;
use crate::running::Running;

/// How often the servers are looked at while the load runs.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);
/// The same for loads that may end within a second.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// A load about to run.
pub(crate) struct Once<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) line: CommandLine,
    /// Where its output goes.
    pub(crate) dir: &'a Path,
    /// One that takes longer is stopped; `None` where it ends by itself.
    pub(crate) limit: Option<Duration>,
    /// Which process must prove that the load is accelerated, if one must.
    pub(crate) accelerated: Option<Asked<'a>>,
    /// Drives to ask while it runs.
    pub(crate) amplification: Option<Amplification>,
}

/// A load that has run.
pub(crate) struct Ran {
    pub(crate) measured: Measured,
    /// Connections that had no answer in the end.
    pub(crate) unanswered: u64,
}

/// Runs a load and makes figures of its output.
pub(crate) fn run(
    once: Once<'_>,
    servers: &mut [Option<Running>],
    conditions: &Conditions<'_>,
) -> Result<Ran, Failure> {
    let Once {
        kind,
        line,
        dir,
        limit,
        accelerated,
        mut amplification,
    } = once;
    let (out, err) = (dir.join("client.out"), dir.join("client.log"));
    let files = File::create(&out).and_then(|out| Ok((out, File::create(&err)?)));
    let (stdout, stderr) = files.map_err(Failure::impossible)?;
    let meter = Meter::start(conditions).map_err(Failure::impossible)?;
    let mut course = Course::default();
    let before = course.look(servers)?;
    let began = Instant::now();
    let mut client = line
        .spawn("the package of the load", stdout, stderr)
        .map_err(Failure::impossible)?;
    let watched = Watched {
        limit,
        accelerated,
        course: &mut course,
        amplification: amplification.as_mut(),
    };
    let ended = watch(&mut client, servers, watched, conditions)?;
    let took = began.elapsed();
    let after = course.look(servers);
    let written = amplification.map(Amplification::end);
    if let Some(obituary) = obituary(servers) {
        return Err(Failure::run(obituary));
    }
    if !client::measured(kind, ended.status.code()) {
        return Err(broken_off(&ended, &err, &out));
    }
    let server_cpu = after?.saturating_sub(before);
    let children_s = server_cpu.as_secs_f64() + ended.cpu.as_secs_f64();
    let used = meter.stop(children_s).map_err(Failure::impossible)?;
    let bytes = fs::read(&out).map_err(Failure::impossible)?;
    let output = client::read(kind, &String::from_utf8_lossy(&bytes)).map_err(Failure::run)?;
    let mut metrics = figures(&output, &course);
    metrics.extend(used.metrics());
    for (name, cpu) in [("server_cpu_s", server_cpu), ("client_cpu_s", ended.cpu)] {
        let seconds = used.with_interrupts(cpu).as_secs_f64();
        metrics.insert(name.to_owned(), seconds);
    }
    let mut detail = output.detail;
    let unsampled = written.and_then(|written| match written {
        Ok(found) => {
            metrics.extend(found.metrics);
            detail.get_or_insert_default().series.push(found.course);
            None
        }
        Err(error) => Some(error.to_string()),
    });
    let mut measured = Measured {
        seconds: output.seconds.unwrap_or(took.as_secs_f64()),
        metrics,
        foreign_cpu_s: used.foreign_s,
        window_s: used.window_s,
        invalid: output.rejected,
        detail,
    };
    judge(&mut measured, accelerated, &course, output.times.as_ref());
    measured.invalid = measured.invalid.or(unsampled);
    Ok(Ran {
        measured,
        unanswered: output.unanswered,
    })
}

/// Makes a run that must prove that it was accelerated invalid where it did not while it was
/// measured, or all the time where it does not say when that was.
fn judge(
    measured: &mut Measured,
    accelerated: Option<Asked<'_>>,
    course: &Course,
    times: Option<&Times>,
) {
    if let Some(asked) = accelerated {
        let moved = match times {
            Some(times) => course.connections.moved_within(&times.measured),
            None => course.connections.moved(),
        };
        acceleration::judge(measured, moved, 0, asked.connections);
    }
}

/// A load that measured nothing, with its last words.
fn broken_off(ended: &Ended, err: &Path, out: &Path) -> Failure {
    let said = [err, out].map(log::last_lines);
    let said = said.into_iter().find(|said| said != "nothing");
    let (status, said) = (ended.status, said.unwrap_or_default());
    Failure::run(format!("the load ended with {status}: {said}"))
}

/// Those of the output; where it says when it measured, what the servers used meanwhile, too.
fn figures(output: &Output, course: &Course) -> BTreeMap<String, f64> {
    let mut metrics = output.metrics.clone();
    let Some(times) = &output.times else {
        return metrics;
    };
    let used = course.used_within(&times.measured);
    if let Some(used) = used.filter(|_| times.transactions > 0.0) {
        // Where interrupts are in no process's time, both sides get their share of them.
        let with_interrupts = 1.0 + course.interrupts_beside(&times.measured);
        let server = used * 1e6 / times.transactions * with_interrupts;
        metrics.insert("server_cpu_us_per_op".to_owned(), server);
        if let Some(client) = output.metrics.get("client_cpu_us_per_op") {
            let client = client * with_interrupts;
            metrics.insert("client_cpu_us_per_op".to_owned(), client);
            metrics.insert("total_cpu_us_per_op".to_owned(), server + client);
        }
    }
    metrics
}

/// What the watch over a load does besides waiting for its end.
struct Watched<'a> {
    limit: Option<Duration>,
    accelerated: Option<Asked<'a>>,
    course: &'a mut Course,
    amplification: Option<&'a mut Amplification>,
}

fn watch(
    client: &mut Child,
    servers: &mut [Option<Running>],
    watched: Watched<'_>,
    conditions: &Conditions<'_>,
) -> Result<Ended, Failure> {
    let Watched {
        limit,
        accelerated,
        course,
        mut amplification,
    } = watched;
    let began = Instant::now();
    let usual = accelerated.map_or(PAUSE, |asked| asked.pause);
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
                if let Some(obituary) = obituary(servers) {
                    client.kill().map_err(Failure::impossible)?;
                    return Err(Failure::run(obituary));
                }
                course.look(servers)?;
                if let Some(amplification) = amplification.as_deref_mut() {
                    amplification.look();
                }
                if let Some(asked) = accelerated {
                    course.ask(asked, client.pid());
                }
            }
        }
    }
}

/// What the first server said last that has ended by itself.
fn obituary(servers: &mut [Option<Running>]) -> Option<String> {
    servers
        .iter_mut()
        .flatten()
        .find_map(|one| one.process.obituary())
}
