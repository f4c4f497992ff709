//! One run: the load warms up, is measured between two moments of our own clock, and ends.
//!
//! Nothing that happens once counts, neither the connections that are made nor what they
//! did before they earned their channels (DESIGN.md): it is warm when all work, and under
//! Saiga when all are upgraded, or should long be. At both moments we read the CPU time of the
//! server's whole tree and of the client; transactions are counted by when they ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use saiga_experiment::acceleration::{self, Acceleration, AccelerationProbe, Moved};
use saiga_experiment::cpu::Used;
use saiga_experiment::log::last_lines;
use saiga_experiment::process::{Child, CommandLine, Signal, Waited};
use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};

use crate::engine::Engine;
use crate::events::{self, Events, Window};
use crate::load::SqlLoad;
use crate::server::{Server, write};
use crate::site::Site;

/// Between two looks whether the load is warm.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// Caches fill and the scheduler finds its ways.
const SETTLING: Duration = Duration::from_millis(200);
/// Connections that are not upgraded by then are measured as they are.
const UPGRADE_LIMIT: Duration = Duration::from_secs(10);
const CLIENT_LOG: &str = "client.log";

/// What stands ready for one run.
pub(crate) struct Ready<'a> {
    pub(crate) site: &'a Site,
    pub(crate) server: &'a mut Server,
    pub(crate) load: &'a SqlLoad,
    /// The client with its cores and environment.
    pub(crate) line: &'a CommandLine,
    pub(crate) window: Duration,
    /// Where the client must prove that its connections are accelerated.
    pub(crate) probe: Option<&'a dyn AccelerationProbe>,
}

/// What was used up to one moment.
struct Moment {
    at_us: u64,
    server: Duration,
    client: Duration,
    seen: Option<Result<Acceleration, String>>,
}

impl Ready<'_> {
    /// Runs the load once.
    pub(crate) fn run(self, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let dir = Path::new(&self.site.dir);
        events::remove(dir).map_err(Failure::impossible)?;
        write(self.site, "stop", "\0").map_err(Failure::impossible)?;
        let log = self.site.file(CLIENT_LOG);
        let [_, (_, package)] = self.site.engine.measured_programs();
        let mut client = self
            .line
            .spawn_logged(package, Path::new(&log))
            .map_err(Failure::impossible)?;

        self.warm_up(&mut client, dir, conditions)?;
        // The meter looks at all processes before it starts to count.
        let meter = Meter::start(conditions).map_err(Failure::impossible)?;
        let before = self.moment(&client).map_err(Failure::impossible)?;
        self.pass(&mut client, self.window, conditions)?;
        let after = self.moment(&client).map_err(Failure::impossible)?;
        let children_s = after.since(&before).as_secs_f64();
        let used = meter.stop(children_s).map_err(Failure::impossible)?;

        self.end(client, conditions)?;
        let window = Window {
            from_us: before.at_us,
            to_us: after.at_us,
        };
        let events = Events::read(self.site.engine, dir, window).map_err(Failure::impossible)?;
        let seconds = Duration::from_micros(window.to_us - window.from_us).as_secs_f64();
        let moments = [&before, &after];
        let metrics = self.metrics(&events, moments, &used, seconds)?;
        let mut measured = Measured {
            seconds,
            metrics,
            foreign_cpu_s: used.foreign_s,
            window_s: used.window_s,
            invalid: None,
            detail: None,
        };
        judge(&mut measured, before, after, self.load.connections);
        Ok(measured)
    }

    /// Lets the load run until it is at its pace.
    fn warm_up(
        &self,
        client: &mut Child,
        dir: &Path,
        conditions: &Conditions<'_>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        while !events::any(dir).map_err(Failure::impossible)? {
            if began.elapsed() > conditions.limit {
                let seconds = conditions.limit.as_secs();
                return Err(self.failure(&format!("began nothing within {seconds} s")));
            }
            self.pass(client, LOOK_PAUSE, conditions)?;
        }
        self.pass(client, SETTLING, conditions)?;
        let Some(probe) = self.probe else {
            return Ok(());
        };
        let settled = Instant::now();
        let connections = self.load.connections;
        let all = u64::from(connections);
        // Whoever cannot be asked is judged when the run is over.
        while probe
            .observe(client.pid(), connections)
            .is_ok_and(|seen| seen.upgraded_sockets < all)
            && settled.elapsed() < UPGRADE_LIMIT
        {
            self.pass(client, LOOK_PAUSE, conditions)?;
        }
        Ok(())
    }

    /// Lets the load run for some time.
    fn pass(
        &self,
        client: &mut Child,
        time: Duration,
        conditions: &Conditions<'_>,
    ) -> Result<(), Failure> {
        match client
            .wait(time, conditions.interrupt)
            .map_err(Failure::impossible)?
        {
            Waited::TimeOver => Ok(()),
            Waited::Interrupted => Err(Failure::Interrupted),
            Waited::Ended(ended) => Err(self.failure(&format!("ended early ({})", ended.status))),
        }
    }

    fn moment(&self, client: &Child) -> io::Result<Moment> {
        let seen = self
            .probe
            .map(|probe| probe.observe(client.pid(), self.load.connections));
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Moment {
            at_us: u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX),
            server: self.server.process.child.tree_cpu_time()?,
            client: client.cpu_time()?,
            seen,
        })
    }

    /// Tells the client to stop and waits until it has written its events.
    fn end(&self, mut client: Child, conditions: &Conditions<'_>) -> Result<(), Failure> {
        match self.site.engine {
            Engine::MariaDb => raise(&self.site.file("stop")).map_err(Failure::impossible)?,
            Engine::Postgres => client.signal(Signal::ALARM),
        }
        let waited = client.wait(conditions.limit, conditions.interrupt);
        match waited.map_err(Failure::impossible)? {
            Waited::Ended(ended) if ended.status.success() => Ok(()),
            Waited::Ended(ended) => Err(self.failure(&format!("ended with {}", ended.status))),
            Waited::Interrupted => Err(Failure::Interrupted),
            Waited::TimeOver => Err(self.failure(&format!(
                "did not end within {} s",
                conditions.limit.as_secs()
            ))),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let [_, (program, _)] = self.site.engine.measured_programs();
        let said = last_lines(Path::new(&self.site.file(CLIENT_LOG)));
        Failure::run(format!("{program} {what}: {said}"))
    }

    fn metrics(
        &self,
        events: &Events,
        [before, after]: [&Moment; 2],
        used: &Used,
        seconds: f64,
    ) -> Result<BTreeMap<String, f64>, Failure> {
        if events.count() == 0 {
            return Err(self.failure("ended no transaction while it was measured"));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let operations = events.count() as f64;
        let server = used.with_interrupts(after.server.saturating_sub(before.server));
        let client = used.with_interrupts(after.client.saturating_sub(before.client));
        let per_op_us = |cpu: Duration| cpu.as_secs_f64() * 1e6 / operations;
        let mut metrics = BTreeMap::from([
            ("throughput_ops_s".to_owned(), operations / seconds),
            ("server_cpu_us_per_op".to_owned(), per_op_us(server)),
            ("client_cpu_us_per_op".to_owned(), per_op_us(client)),
            ("total_cpu_us_per_op".to_owned(), per_op_us(server + client)),
        ]);
        metrics.extend(used.metrics());
        // The two tools do not agree on whether connecting is a part of the transaction.
        let percentiles = [(50, "latency_p50_us"), (99, "latency_p99_us")];
        for (per_cent, name) in percentiles.into_iter().filter(|_| !self.load.reconnect) {
            #[expect(clippy::cast_precision_loss, reason = "times stay far below 2^53")]
            let took = events.percentile_us(per_cent).map(|took| took as f64);
            metrics.extend(took.map(|took| (name.to_owned(), took)));
        }
        Ok(metrics)
    }
}

/// Sets the first byte of a file that others have mapped: it must not be cut meanwhile.
fn raise(flag: &str) -> io::Result<()> {
    File::options().write(true).open(flag)?.write_all(&[1])
}

impl Moment {
    /// CPU time of server and client since `earlier`.
    fn since(&self, earlier: &Self) -> Duration {
        self.server.saturating_sub(earlier.server) + self.client.saturating_sub(earlier.client)
    }
}

/// Makes a run invalid unless nearly all bytes of the window went by channel.
fn judge(measured: &mut Measured, before: Moment, after: Moment, connections: u32) {
    let (Some(before), Some(after)) = (before.seen, after.seen) else {
        return;
    };
    let moved = before.and_then(|before| {
        let after = after?;
        Ok((after.upgraded_sockets, Moved::between(&before, &after)))
    });
    acceleration::judge(measured, moved, 0, connections);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(seen: Option<Result<(u64, u64), &str>>) -> Moment {
        let answer = |one: Result<(u64, u64), &str>| {
            one.map_err(str::to_owned)
                .map(|(channel_bytes, tcp_bytes)| Acceleration {
                    upgraded_sockets: 16,
                    channel_bytes,
                    tcp_bytes,
                })
        };
        Moment {
            at_us: 0,
            server: Duration::ZERO,
            client: Duration::ZERO,
            seen: seen.map(answer),
        }
    }

    fn invalid(before: Moment, after: Moment) -> Option<String> {
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        judge(&mut measured, before, after, 16);
        measured.invalid
    }

    #[test]
    fn only_bytes_of_the_window_are_the_proof() {
        let early = || moment(Some(Ok((0, 5000))));
        assert_eq!(invalid(early(), moment(Some(Ok((9000, 6000))))), None);
        let late = invalid(early(), moment(Some(Ok((8999, 6001))))).unwrap();
        assert_eq!(
            late,
            "not accelerated: 8999 bytes went by channel and 1001 by TCP, and 16 of the client's \
             16 connections were upgraded"
        );
        assert!(
            invalid(early(), early()).is_some(),
            "no bytes at all prove nothing"
        );
    }

    #[test]
    fn without_an_answer_the_reason_is_given_and_without_a_question_nothing_is_judged() {
        let mute = invalid(moment(Some(Err("no page"))), moment(Some(Ok((1, 0)))));
        assert_eq!(mute.unwrap(), "not accelerated: no page");
        assert_eq!(invalid(moment(None), moment(None)), None);
    }
}
