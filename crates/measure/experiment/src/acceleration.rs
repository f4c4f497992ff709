//! Proves that a run was accelerated, from the counters of a process.
//!
//! In: samples of the counters while the load runs. A process counts upgrades for its whole life,
//! but bytes only while a connection is open, and load generators close all connections at their
//! end. Out: the share of bytes that went through channels, and a rejection if it is too small.
//! Deliberately absent: how counters are read; this crate does not depend on the library.

use std::ops::Range;

use saiga_process::proc;

use crate::workload::Measured;

/// Minimum share of the bytes of the measured interval that must go through channels.
const MIN_SHARE: f64 = 0.9;
/// The reason if the measured interval was shorter than the interval between two samples.
const TOO_SHORT: &str =
    "no sample of its connections fell into the measured interval; measure for longer";
/// The reason if the whole load was shorter.
const NO_SAMPLE: &str = "the load ended before its connections were sampled; let it run for longer";

/// The reason if no bytes moved between two samples.
const NO_BYTES: &str =
    "no bytes moved between samples of its connections; let the load run for longer";

/// Counters of a process under Saiga.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acceleration {
    /// Connections upgraded since the process started.
    pub upgraded_sockets: u64,
    /// Bytes that open connections moved through channels, both directions.
    pub channel_bytes: u64,
    /// Bytes that open connections moved by TCP, both directions.
    pub tcp_bytes: u64,
}

/// The counters of a process, or the reason why they are unknown.
pub type Counters = Result<Acceleration, String>;

/// Reads the counters of a running process under Saiga.
pub trait AccelerationProbe {
    /// The counters of process `pid`, which has at most `clients` connections.
    ///
    /// # Errors
    /// Returns the reason as a message.
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String>;
}

/// The counters of the server `server` and its children together, for a server whose clients have
/// nothing preloaded. A server with a process per connection has helpers without counters, which
/// are left out.
///
/// # Errors
/// Returns the reason if no process has counters.
pub fn of_server(probe: &dyn AccelerationProbe, server: u32, connections: u32) -> Counters {
    let first = probe.observe(server, connections);
    let children = proc::children(server).into_iter();
    let read = children.map(|pid| probe.observe(pid, connections));
    read.fold(first, |total, one| match (total, one) {
        (Ok(total), Ok(one)) => Ok(total.and(one)),
        (Ok(known), Err(_)) | (Err(_), Ok(known)) => Ok(known),
        (Err(reason), Err(_)) => Err(reason),
    })
}

impl Acceleration {
    /// The sum for two processes.
    fn and(self, other: Self) -> Self {
        Self {
            upgraded_sockets: self.upgraded_sockets + other.upgraded_sockets,
            channel_bytes: self.channel_bytes + other.channel_bytes,
            tcp_bytes: self.tcp_bytes + other.tcp_bytes,
        }
    }
}

/// Bytes that the connections of a process moved in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Through channels, both directions.
    pub channel_bytes: u64,
    /// By TCP, both directions.
    pub tcp_bytes: u64,
}

impl Moved {
    /// The bytes between two samples. Bytes of connections that closed in between are missing.
    #[must_use]
    pub fn between(before: &Acceleration, after: &Acceleration) -> Self {
        let since = |of: fn(&Acceleration) -> u64| of(after).saturating_sub(of(before));
        Self {
            channel_bytes: since(|counters| counters.channel_bytes),
            tcp_bytes: since(|counters| counters.tcp_bytes),
        }
    }

    /// The sum of two intervals.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            channel_bytes: self.channel_bytes + other.channel_bytes,
            tcp_bytes: self.tcp_bytes + other.tcp_bytes,
        }
    }

    /// The share that went through channels; 0 if no bytes moved.
    #[must_use]
    pub fn channel_share(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let [channel, tcp] = [self.channel_bytes, self.tcp_bytes].map(|bytes| bytes as f64);
        channel / (channel + tcp).max(1.0)
    }

    /// The reason to reject a run under Saiga that moved these bytes; `None` if at least 90 % of
    /// them, not counting `excused` bytes, went through channels. `upgraded` is the number of the
    /// client's `connections` that were upgraded.
    fn shortfall(self, excused: u64, upgraded: u64, connections: u32) -> Option<String> {
        let Self {
            channel_bytes,
            tcp_bytes,
        } = self;
        let excused = excused.min(channel_bytes / 2).min(tcp_bytes);
        let counted = Self {
            tcp_bytes: tcp_bytes - excused,
            ..self
        };
        (counted.channel_share() < MIN_SHARE).then(|| {
            let note = match excused {
                0 => String::new(),
                bytes => format!(" ({bytes} of them before connections could be upgraded)"),
            };
            format!(
                "{channel_bytes} bytes went through channels and {tcp_bytes} by TCP{note}, and \
                 {upgraded} of the client's {connections} connections were upgraded"
            )
        })
    }
}

/// Samples of a process's counters while a load runs.
#[derive(Debug, Clone, Default)]
pub struct ProbeSamples {
    /// The counters before the load, if the process was sampled from the beginning of the load.
    before: Option<Acceleration>,
    /// Time in seconds, ascending, on any clock, and the counters at that time.
    samples: Vec<(f64, Acceleration)>,
    /// The reason why the last failed sample failed.
    last_failure: Option<String>,
}

impl ProbeSamples {
    /// For a process that is sampled from the beginning of the load, with the counters `before`.
    /// The bytes before the first sample count as well.
    #[must_use]
    pub fn since(before: Acceleration) -> Self {
        Self {
            before: Some(before),
            ..Self::default()
        }
    }

    /// Adds a sample at time `at_s`, which is not earlier than that of the previous sample.
    pub fn add(&mut self, at_s: f64, answer: Result<Acceleration, String>) {
        match answer {
            Ok(counters) => self.samples.push((at_s, counters)),
            Err(why) => self.last_failure = Some(why),
        }
    }

    /// The number of upgraded connections of the load, and the bytes that all connections moved
    /// between the samples within an interval. If only one sample is within the interval, the bytes
    /// since the previous sample count.
    ///
    /// # Errors
    /// Returns the reason as a message if there are too few samples.
    pub fn moved_within(&self, time: &Range<f64>) -> Result<(u64, Moved), String> {
        let first = self.samples.partition_point(|(at, _)| *at < time.start);
        let end = self.samples.partition_point(|(at, _)| *at <= time.end);
        let samples = self.samples.get(first..end).unwrap_or_default();
        let Some((_, last)) = samples.last() else {
            return Err(match &self.last_failure {
                _ if !self.samples.is_empty() => TOO_SHORT.to_owned(),
                Some(why) => why.clone(),
                None => NO_SAMPLE.to_owned(),
            });
        };
        let alone = samples.len() == 1;
        let earlier = match first.checked_sub(1) {
            Some(at) => alone.then(|| self.samples[at].1),
            None => self.before.or(alone.then(Acceleration::default)),
        };
        let mut moved = Moved::default();
        let mut from = earlier.as_ref();
        for (_, counters) in samples {
            moved = from.map_or(moved, |from| moved.and(Moved::between(from, counters)));
            from = Some(counters);
        }
        let upgraded = last.upgraded_sockets;
        let before = self.before.map_or(0, |before| before.upgraded_sockets);
        Ok((upgraded.saturating_sub(before), moved))
    }

    /// [`moved_within`](Self::moved_within) for all samples.
    ///
    /// # Errors
    /// As [`moved_within`](Self::moved_within).
    pub fn moved(&self) -> Result<(u64, Moved), String> {
        self.moved_within(&(f64::NEG_INFINITY..f64::INFINITY))
    }
}

/// Adds the number of upgraded connections and the share of bytes through channels to a run under
/// Saiga. Rejects the run if that share is unknown or below 90 %. Of the bytes by TCP, `excused`
/// are not counted, but at most half as many as went through channels: a run with few other bytes
/// proves nothing.
pub fn judge(
    measured: &mut Measured,
    moved: Result<(u64, Moved), String>,
    excused: u64,
    connections: u32,
) {
    let shortfall = match moved {
        Ok((_, moved)) if moved == Moved::default() => Some(NO_BYTES.to_owned()),
        Ok((upgraded, moved)) => {
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            let sockets = upgraded as f64;
            let share = moved.channel_share();
            let metrics = [("upgraded_sockets", sockets), ("channel_share", share)];
            let named = metrics.map(|(name, value)| (name.to_owned(), value));
            measured.metrics.extend(named);
            moved.shortfall(excused, upgraded, connections)
        }
        Err(why) => Some(why),
    };
    if let Some(why) = shortfall {
        let reason = || format!("not accelerated: {why}");
        measured.invalid.get_or_insert_with(reason);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Samples once per second of bytes through channels and by TCP since the client began.
    fn samples(bytes: &[(u64, u64)]) -> ProbeSamples {
        let mut samples = ProbeSamples::default();
        for (at_s, &(channel_bytes, tcp_bytes)) in (10_u32..).zip(bytes) {
            let counters = Acceleration {
                upgraded_sockets: 1,
                channel_bytes,
                tcp_bytes,
            };
            samples.add(f64::from(at_s), Ok(counters));
        }
        samples
    }

    /// A probe that knows only the process with this PID.
    struct Only(u32);

    impl AccelerationProbe for Only {
        fn observe(&self, pid: u32, _: u32) -> Counters {
            let counters = Acceleration {
                channel_bytes: 9,
                ..Acceleration::default()
            };
            (pid == self.0)
                .then_some(counters)
                .ok_or("no page".to_owned())
        }
    }

    #[test]
    fn the_children_of_a_server_count_and_processes_without_counters_do_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let server = std::process::id();
        let total = of_server(&Only(child.id()), server, 2);
        let none = of_server(&Only(0), server, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(total.unwrap().channel_bytes, 9);
        assert_eq!(none, Err("no page".to_owned()));
    }

    fn moved(samples: &ProbeSamples, time: Range<f64>) -> (u64, u64) {
        let (upgraded, moved) = samples.moved_within(&time).unwrap();
        assert_eq!(upgraded, 1);
        (moved.channel_bytes, moved.tcp_bytes)
    }

    #[test]
    fn only_bytes_of_the_measured_interval_count() {
        let samples = samples(&[(0, 50), (100, 60), (900, 61), (900, 900)]);
        assert_eq!(moved(&samples, 11.0..12.0), (800, 1));
        assert_eq!(moved(&samples, 10.5..12.9), (800, 1));
        assert_eq!(
            moved(&samples, f64::NEG_INFINITY..f64::INFINITY),
            (900, 850)
        );
        // Shorter than the interval between two samples.
        assert_eq!(moved(&samples, 11.5..12.5), (800, 1));
        assert_eq!(moved(&samples, 9.5..10.5), (0, 50));
        let error = samples.moved_within(&(12.1..12.9)).unwrap_err();
        assert!(
            error.starts_with("no sample of its connections fell into"),
            "{error}"
        );
    }

    #[test]
    fn counters_restart_with_new_connections() {
        let samples = samples(&[(100, 5), (900, 5), (30, 64), (500, 64)]);
        assert_eq!(moved(&samples, 10.0..13.0), (800 + 470, 59));
    }

    #[test]
    fn a_load_that_is_sampled_from_its_beginning_counts_as_a_whole() {
        let mut samples = ProbeSamples::since(Acceleration::default());
        samples.samples = self::samples(&[(0, 50), (100, 60), (900, 61)]).samples;
        assert_eq!(moved(&samples, 0.0..12.0), (900, 61));
        assert_eq!(moved(&samples, 10.5..12.0), (800, 1));
    }

    #[test]
    fn connections_from_before_the_load_do_not_count() {
        let of = |upgraded_sockets, channel_bytes| Acceleration {
            upgraded_sockets,
            channel_bytes,
            tcp_bytes: 700,
        };
        let mut samples = ProbeSamples::since(of(1000, 5000));
        samples.add(1.0, Ok(of(1050, 5900)));
        let (upgraded, moved) = samples.moved().unwrap();
        assert_eq!(upgraded, 50);
        assert_eq!((moved.channel_bytes, moved.tcp_bytes), (900, 0));
    }

    /// The reason of the rejection and the share of a judged run.
    fn judged(moved: Result<(u64, Moved), String>) -> (Option<String>, Option<f64>) {
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        judge(&mut measured, moved, 0, 10);
        (measured.invalid, measured.metrics.remove("channel_share"))
    }

    #[test]
    fn nine_tenths_of_the_bytes_must_go_through_channels() {
        let result = |upgraded, channel_bytes, tcp_bytes| {
            let moved = Moved {
                channel_bytes,
                tcp_bytes,
            };
            judged(Ok((upgraded, moved)))
        };
        assert_eq!(result(10, 900, 100), (None, Some(0.9)));
        // One of many connections, or all of them so late that most bytes went by TCP.
        for (upgraded, channel_bytes) in [(1, 100), (10, 899), (10, 1)] {
            let (why, _) = result(upgraded, channel_bytes, 1000 - channel_bytes);
            let wanted = format!(
                "not accelerated: {channel_bytes} bytes went through channels and {} by TCP, and \
                 {upgraded} of the client's 10 connections were upgraded",
                1000 - channel_bytes
            );
            assert_eq!(why, Some(wanted));
        }
        let (why, share) = result(10, 0, 0);
        let still = "not accelerated: no bytes moved between samples";
        assert!(why.is_some_and(|why| why.starts_with(still)));
        assert_eq!(share, None);
    }

    #[test]
    fn a_process_without_counters_proves_nothing() {
        let (never, share) = judged(ProbeSamples::default().moved());
        let never = never.unwrap();
        assert!(
            never.starts_with("not accelerated: the load ended before"),
            "{never}"
        );
        assert_eq!(share, None);
        let mut failing = ProbeSamples::default();
        failing.add(1.0, Err("no page".to_owned()));
        let reason = "not accelerated: no page".to_owned();
        assert_eq!(judged(failing.moved()), (Some(reason), None));
    }
}
