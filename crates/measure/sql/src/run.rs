//! One run: the load warms up, is measured between two samples, and is stopped.
//!
//! Connecting and the time before upgrades do not count: the load is warm when all connections
//! work, and under Saiga when all are upgraded or should be. Both samples contain the CPU time of
//! the server's process tree, of the gateway and of the client; transactions are counted by their
//! ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use saiga_database::{Engine, Installation, Server};
use saiga_experiment::acceleration::{self, AccelerationProbe, Counters, Moved};
use saiga_experiment::workload::{Conditions, Failure, Measured, Meter};
use saiga_hosts::Hosts;
use saiga_process::child::{Child, CommandLine, Signal, Waited};
use saiga_process::cpu::Used;
use saiga_process::log::last_lines;

use crate::events::{self, Events, Window};
use crate::load::{SqlLoad, generator};

/// Interval between two checks whether the load is warm.
const WARM_UP_PAUSE: Duration = Duration::from_millis(10);
/// Time for caches and the scheduler to settle.
const SETTLING: Duration = Duration::from_millis(200);
/// Timeout for upgrades; then the connections are measured as they are.
const UPGRADE_LIMIT: Duration = Duration::from_secs(10);
const CLIENT_LOG: &str = "client.log";

/// A server and a client command line, ready for one run.
pub(crate) struct PreparedRun<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) server: &'a Server,
    pub(crate) load: &'a SqlLoad,
    /// The client with its CPUs and environment.
    pub(crate) line: &'a CommandLine,
    pub(crate) window: Duration,
    /// Present if the connections must be proved to be accelerated.
    pub(crate) probe: Option<&'a dyn AccelerationProbe>,
    /// The hosts of server and client; `None` if both are on this host.
    pub(crate) hosts: Option<&'a Hosts>,
}

/// CPU times at one time.
struct Sample {
    at_us: u64,
    /// The server's process tree and the gateway.
    server: Duration,
    gateway: Duration,
    /// The client, and the gateway on its host.
    client: Duration,
}

impl PreparedRun<'_> {
    /// Runs the load once and measures it.
    pub(crate) fn run(self, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let dir = Path::new(&self.installation.dir);
        events::remove(dir).map_err(Failure::impossible)?;
        self.installation.write("stop", "\0")?;
        let log = self.installation.file(CLIENT_LOG);
        let (_, package) = generator(self.installation.engine);
        let mut client = self
            .line
            .spawn_logged(package, Path::new(&log))
            .map_err(Failure::impossible)?;

        self.warm_up(&mut client, dir, conditions)?;
        let counters_before = self.counters(&client);
        // The meter reads all processes before its interval begins.
        let meter = Meter::start(conditions).map_err(Failure::impossible)?;
        let before = self.sample(&client).map_err(Failure::impossible)?;
        self.let_run(&mut client, self.window, conditions)?;
        let after = self.sample(&client).map_err(Failure::impossible)?;
        let children_s = after.since(&before).as_secs_f64();
        let used = meter.stop(children_s).map_err(Failure::impossible)?;
        let counters_after = self.counters(&client);

        self.end(client, conditions)?;
        let window = Window {
            from_us: before.at_us,
            to_us: after.at_us,
        };
        let events =
            Events::read(self.installation.engine, dir, window).map_err(Failure::impossible)?;
        let seconds = Duration::from_micros(window.to_us - window.from_us).as_secs_f64();
        let samples = [&before, &after];
        let metrics = self.metrics(&events, samples, &used, seconds)?;
        let mut measured = Measured {
            seconds,
            metrics,
            foreign_cpu_s: used.foreign_s,
            window_s: used.window_s,
            invalid: None,
            detail: None,
        };
        let counters = [counters_before, counters_after];
        judge(&mut measured, counters, self.load.connections);
        Ok(measured)
    }

    /// Lets the load run until its rate is steady.
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
                return Err(self.failure(&format!("ran no transaction within {seconds} s")));
            }
            self.let_run(client, WARM_UP_PAUSE, conditions)?;
        }
        self.let_run(client, SETTLING, conditions)?;
        let settled = Instant::now();
        let all = u64::from(self.load.connections);
        // If the probe fails, the run is rejected later.
        let waits = |counters: Counters| counters.is_ok_and(|seen| seen.upgraded_sockets < all);
        while self.counters(client).is_some_and(waits) && settled.elapsed() < UPGRADE_LIMIT {
            self.let_run(client, WARM_UP_PAUSE, conditions)?;
        }
        Ok(())
    }

    /// Lets the load run for `time`; fails if it ends.
    fn let_run(
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

    /// The counters of the processes under Saiga that have the connections: the client, or the
    /// server behind a gateway, whose client has nothing preloaded. `None` without a probe.
    fn counters(&self, client: &Child) -> Option<Counters> {
        let (probe, connections) = (self.probe?, self.load.connections);
        let server = self.server.process.child.pid();
        Some(match self.hosts {
            None => probe.observe(client.pid(), connections),
            Some(_) => acceleration::of_server(probe, server, connections),
        })
    }

    fn sample(&self, client: &Child) -> io::Result<Sample> {
        let gateway = self
            .hosts
            .map_or(Ok(Duration::ZERO), Hosts::gateway_cpu_time)?;
        let far = self.hosts.map_or(Ok(Duration::ZERO), Hosts::far_cpu_time)?;
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Sample {
            at_us: u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX),
            server: self.server.process.child.tree_cpu_time()? + gateway,
            gateway,
            client: client.cpu_time()? + far,
        })
    }

    /// Stops the client and waits until it has written its log.
    fn end(&self, mut client: Child, conditions: &Conditions<'_>) -> Result<(), Failure> {
        match self.installation.engine {
            Engine::MariaDb => {
                set_flag(&self.installation.file("stop")).map_err(Failure::impossible)?
            }
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
        let (program, _) = generator(self.installation.engine);
        let lines = last_lines(Path::new(&self.installation.file(CLIENT_LOG)));
        Failure::run(format!("{program} {what}: {lines}"))
    }

    fn metrics(
        &self,
        events: &Events,
        [before, after]: [&Sample; 2],
        used: &Used,
        seconds: f64,
    ) -> Result<BTreeMap<String, f64>, Failure> {
        if events.count() == 0 {
            return Err(self.failure("completed no transaction while it was measured"));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let operations = events.count() as f64;
        let own_client = after.client.saturating_sub(before.client);
        let server = used.with_interrupts(after.server.saturating_sub(before.server));
        let client = used.with_interrupts(own_client);
        let per_op_us = |cpu: Duration| cpu.as_secs_f64() * 1e6 / operations;
        let mut metrics = BTreeMap::from([
            ("throughput_ops_s".to_owned(), operations / seconds),
            ("server_cpu_us_per_op".to_owned(), per_op_us(server)),
            ("client_cpu_us_per_op".to_owned(), per_op_us(client)),
            ("total_cpu_us_per_op".to_owned(), per_op_us(server + client)),
        ]);
        metrics.extend(used.metrics());
        if let Some(hosts) = self.hosts {
            let gateway = after.gateway.saturating_sub(before.gateway);
            let per_op = |(name, cpu_s): (&str, f64)| (name.to_owned(), cpu_s * 1e6 / operations);
            let of_hosts = hosts.cpu_seconds(used, own_client, gateway);
            metrics.extend(of_hosts.into_iter().map(per_op));
        }
        // The tools differ in whether the time for connecting is a part of the transaction.
        let percentiles = [(50, "latency_p50_us"), (99, "latency_p99_us")];
        for (per_cent, name) in percentiles.into_iter().filter(|_| !self.load.reconnect) {
            #[expect(clippy::cast_precision_loss, reason = "times stay far below 2^53")]
            let duration = events
                .percentile_us(per_cent)
                .map(|duration| duration as f64);
            metrics.extend(duration.map(|duration| (name.to_owned(), duration)));
        }
        Ok(metrics)
    }
}

/// Sets the first byte of a file without truncating it, because the client has mapped the file.
fn set_flag(flag: &str) -> io::Result<()> {
    File::options().write(true).open(flag)?.write_all(&[1])
}

impl Sample {
    /// CPU time of server and client since `earlier`.
    fn since(&self, earlier: &Self) -> Duration {
        self.server.saturating_sub(earlier.server) + self.client.saturating_sub(earlier.client)
    }
}

/// Rejects a run unless nearly all bytes between two readings of the counters went through
/// channels.
fn judge(measured: &mut Measured, counters: [Option<Counters>; 2], connections: u32) {
    let [Some(before), Some(after)] = counters else {
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
    use saiga_experiment::acceleration::Acceleration;

    use super::*;

    fn read(counters: Option<Result<(u64, u64), &str>>) -> Option<Counters> {
        let answer = |one: Result<(u64, u64), &str>| {
            one.map_err(str::to_owned)
                .map(|(channel_bytes, tcp_bytes)| Acceleration {
                    upgraded_sockets: 16,
                    channel_bytes,
                    tcp_bytes,
                })
        };
        counters.map(answer)
    }

    fn invalid(before: Option<Counters>, after: Option<Counters>) -> Option<String> {
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        judge(&mut measured, [before, after], 16);
        measured.invalid
    }

    #[test]
    fn only_bytes_of_the_window_count() {
        let early = || read(Some(Ok((0, 5000))));
        assert_eq!(invalid(early(), read(Some(Ok((9000, 6000))))), None);
        let late = invalid(early(), read(Some(Ok((8999, 6001))))).unwrap();
        assert_eq!(
            late,
            "not accelerated: 8999 bytes went through channels and 1001 by TCP, and 16 of the client's \
             16 connections were upgraded"
        );
        assert!(
            invalid(early(), early()).is_some(),
            "no bytes at all prove nothing"
        );
    }

    #[test]
    fn a_failed_probe_is_the_reason_and_without_a_probe_there_is_none() {
        let failed = invalid(read(Some(Err("no page"))), read(Some(Ok((1, 0)))));
        assert_eq!(failed.unwrap(), "not accelerated: no page");
        assert_eq!(invalid(read(None), read(None)), None);
    }
}
