//! [`ChannelWatch`]: samples the counters of the servers of a run under Saiga, or of its client.
//!
//! In: PIDs and a probe. Out: the proof that the run was accelerated, or its rejection. Connections
//! that are not part of the load, such as links between servers, are subtracted.

use std::time::{Duration, Instant};

use saiga_experiment::acceleration::{AccelerationProbe, Moved, ProbeSamples, judge};
use saiga_experiment::workload::Measured;

use crate::load::RedisLoad;

/// The longest interval between two samples of a server. A sample costs about 10 µs of CPU time of
/// this process.
const SAMPLE_PAUSE: Duration = Duration::from_millis(50);
/// [`SAMPLE_PAUSE`] with thousands of idle connections, where a sample takes half a millisecond.
const LONG_SAMPLE_PAUSE: Duration = Duration::from_millis(200);
/// The first interval is the longest one divided by this number, and each interval is twice the
/// previous one, so that a load of a few milliseconds is sampled as well.
const FIRST_PART: u32 = 10;

/// The connections of a server that are not part of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherConnections {
    /// Whether the server is linked to other servers.
    pub(crate) joined: bool,
    /// Number of idle connections opened before the load.
    pub(crate) idle: u32,
}

impl OtherConnections {
    /// No other connections.
    pub(crate) const NONE: Self = Self {
        joined: false,
        idle: 0,
    };
}

/// Samples of the servers of one run, or of its client.
pub(crate) struct ChannelWatch<'a> {
    probe: &'a dyn AccelerationProbe,
    clients: u32,
    idle: u32,
    began: Instant,
    /// Number of samples so far.
    count: u32,
    /// Samples after this time are ignored, because the load had ended.
    end_s: f64,
    /// Samples of each process by PID. Links between servers and idle connections existed before
    /// the load and do not prove that its clients are accelerated.
    samples: Vec<(u32, ProbeSamples)>,
    /// The reason if the counters before the load are unknown.
    unknown_before: Option<String>,
}

impl<'a> ChannelWatch<'a> {
    /// Begins with a sample of the processes `pids`, which share the load's `clients` connections
    /// and also have `other` connections.
    pub(crate) fn new(
        probe: &'a dyn AccelerationProbe,
        pids: &[u32],
        clients: u32,
        other: OtherConnections,
    ) -> Self {
        let OtherConnections { joined, idle } = other;
        let mut unknown_before = None;
        let mut before = |pid| {
            let has_others = joined || idle > 0;
            let asked = has_others.then(|| probe.observe(pid, search_range(clients, idle)));
            asked.transpose().unwrap_or_else(|why| {
                unknown_before = Some(why);
                None
            })
        };
        let samples_of = |&pid: &u32| (pid, ProbeSamples::since(before(pid).unwrap_or_default()));
        let samples = pids.iter().map(samples_of).collect();
        Self {
            probe,
            clients,
            idle,
            began: Instant::now(),
            count: 0,
            end_s: f64::INFINITY,
            samples,
            unknown_before,
        }
    }

    fn longest_pause(&self) -> Duration {
        if self.idle > 0 {
            LONG_SAMPLE_PAUSE
        } else {
            SAMPLE_PAUSE
        }
    }

    /// Time until the next sample; long enough for the cost of samples to be negligible.
    pub(crate) fn pause(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.count).unwrap_or(FIRST_PART);
        self.longest_pause() / FIRST_PART * doubled.min(FIRST_PART)
    }

    /// Takes a sample of each process.
    pub(crate) fn sample(&mut self) {
        self.count = self.count.saturating_add(1);
        let at_s = self.began.elapsed().as_secs_f64();
        for (pid, samples) in &mut self.samples {
            let answer = self
                .probe
                .observe(*pid, search_range(self.clients, self.idle));
            samples.add(at_s, answer);
        }
    }

    /// Sets the end of the load; its process may end later.
    pub(crate) fn end_at(&mut self, end: Instant) {
        self.end_s = end.saturating_duration_since(self.began).as_secs_f64();
    }

    /// Upgraded connections and moved bytes of all processes together.
    fn moved(&self) -> Result<(u64, Moved), String> {
        if let Some(why) = &self.unknown_before {
            return Err(format!("the counters before the load are unknown: {why}"));
        }
        let mut total = (0, Moved::default());
        for (_, samples) in &self.samples {
            let (upgraded, moved) = samples.moved_within(&(f64::NEG_INFINITY..self.end_s))?;
            total = (total.0 + upgraded, total.1.and(moved));
        }
        Ok(total)
    }

    /// Adds the share of bytes through channels to the run, and rejects it unless nearly all bytes
    /// of `load` went through channels. The first bytes of each connection do not count, because a
    /// connection is on TCP until it is upgraded.
    pub(crate) fn judge(self, measured: &mut Measured, load: &RedisLoad) {
        let beginning = u64::from(self.clients) * load.least_bytes_at_first();
        judge(measured, self.moved(), beginning, self.clients);
    }
}

/// Number of descriptors to search for those of `clients` connections behind `idle` ones. One in
/// sixty-four connections may have an additional descriptor of the library.
fn search_range(clients: u32, idle: u32) -> u32 {
    clients.saturating_add(idle).saturating_add(idle / 32)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use saiga_experiment::acceleration::Acceleration;

    use super::*;
    use crate::load::Test;

    const JOINED: OtherConnections = OtherConnections {
        joined: true,
        idle: 0,
    };

    /// A process's counters: upgraded connections, bytes through channels and by TCP.
    type Answer = Result<(u64, u64, u64), &'static str>;

    /// A probe that returns prepared answers in order.
    struct Script(RefCell<std::vec::IntoIter<Answer>>);

    impl Script {
        fn new(answers: Vec<Answer>) -> Self {
            Self(RefCell::new(answers.into_iter()))
        }
    }

    impl AccelerationProbe for Script {
        fn observe(&self, _pid: u32, _clients: u32) -> Result<Acceleration, String> {
            let answer = self.0.borrow_mut().next().unwrap();
            let (upgraded_sockets, channel_bytes, tcp_bytes) = answer?;
            Ok(Acceleration {
                upgraded_sockets,
                channel_bytes,
                tcp_bytes,
            })
        }
    }

    /// The reason for rejecting a run with fifty clients whose single server has these samples.
    fn invalid_after(answers: &[Answer]) -> Option<String> {
        judged_after(answers).invalid
    }

    fn judged_after(answers: &[Answer]) -> Measured {
        let probe = Script::new(answers.to_vec());
        let mut watch = ChannelWatch::new(&probe, &[1], 50, OtherConnections::NONE);
        answers.iter().for_each(|_| watch.sample());
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        watch.judge(&mut measured, &RedisLoad::new(Test::Set, 50));
        measured
    }

    #[test]
    fn half_of_the_connections_and_some_bytes_prove_nothing() {
        let late = [Ok((25, 0, 120_000)), Ok((25, 10_000, 135_600))];
        assert_eq!(
            invalid_after(&late).unwrap(),
            "not accelerated: 10000 bytes went through channels and 135600 by TCP (5000 of them before \
             connections could be upgraded), and 25 of the client's 50 connections were upgraded"
        );
        let few = [Ok((5, 0, 105_600)), Ok((5, 300_000, 138_933))];
        assert_eq!(
            invalid_after(&few),
            None,
            "nine tenths of the bytes are enough, on any number of connections"
        );
    }

    /// 64 requests of at least 33 bytes on each connection. The reported share is of all bytes.
    #[test]
    fn bytes_by_tcp_before_the_upgrade_do_not_count() {
        let counts = judged_after(&[Ok((50, 300_000, 138_933))]);
        assert_eq!(counts.invalid, None);
        let share = counts.metrics["channel_share"];
        assert!((share - 0.6835).abs() < 0.0001, "{share}");
        assert!(invalid_after(&[Ok((50, 300_000, 138_934))]).is_some());
        let beginning_alone = [(50, 0, 5000), (1, 9000, 105_600), (50, 9000, 9000)];
        for seen in beginning_alone {
            assert!(invalid_after(&[Ok(seen)]).is_some(), "{seen:?}");
        }
        // The bytes of closed connections are no longer counted.
        let over = [Ok((50, 300_000, 105_600)), Ok((50, 0, 0))];
        assert_eq!(invalid_after(&over), None);
    }

    #[test]
    fn a_sample_after_the_load_does_not_count() {
        let probe = Script::new(vec![Ok((8, 9000, 0)), Ok((8, 9000, 9_000_000))]);
        let mut watch = ChannelWatch::new(&probe, &[1], 8, OtherConnections::NONE);
        watch.sample();
        watch.end_at(Instant::now());
        watch.sample();
        let moved = Moved {
            channel_bytes: 9000,
            tcp_bytes: 0,
        };
        assert_eq!(watch.moved(), Ok((8, moved)));
    }

    #[test]
    fn counters_of_servers_add_up_and_links_do_not_count() {
        // Two servers: a sample of each before the run, then one during it.
        let answers = vec![
            Ok((3, 100, 10)),
            Ok((7, 100, 10)),
            Ok((13, 300, 20)),
            Ok((20, 400, 30)),
        ];
        let probe = Script::new(answers);
        let mut watch = ChannelWatch::new(&probe, &[1, 2], 50, JOINED);
        watch.sample();
        let moved = Moved {
            channel_bytes: 500,
            tcp_bytes: 30,
        };
        assert_eq!(watch.moved(), Ok((23, moved)));
    }

    #[test]
    fn bytes_of_idle_connections_prove_nothing() {
        let watched = |during| {
            let probe = Script::new(vec![Ok((1000, 5000, 700)), during]);
            let other = OtherConnections {
                joined: false,
                idle: 1000,
            };
            let mut watch = ChannelWatch::new(&probe, &[1], 50, other);
            watch.sample();
            watch.moved().unwrap()
        };
        assert_eq!(watched(Ok((1000, 5000, 700))), (0, Moved::default()));
        assert_eq!(watched(Ok((1050, 5900, 700))).1.channel_bytes, 900);
    }

    #[test]
    fn the_counters_before_the_load_must_be_known() {
        let probe = Script::new(vec![Err("no page"), Ok((53, 9000, 0))]);
        let mut watch = ChannelWatch::new(&probe, &[1], 50, JOINED);
        watch.sample();
        let why = watch.moved().unwrap_err();
        assert_eq!(why, "the counters before the load are unknown: no page");
    }

    #[test]
    fn a_failed_probe_is_the_reason() {
        let failed = invalid_after(&[Err("no page"), Err("no page")]);
        assert_eq!(failed.unwrap(), "not accelerated: no page");
        let never = invalid_after(&[]).unwrap();
        assert!(
            never.starts_with("not accelerated: the load ended before"),
            "{never}"
        );
    }

    #[test]
    fn samples_are_more_frequent_at_first() {
        let probe = Script::new(vec![Ok((0, 0, 0)); 6]);
        let mut watch = ChannelWatch::new(&probe, &[1], 50, OtherConnections::NONE);
        let pauses = [5, 10, 20, 40, 50, 50].map(Duration::from_millis);
        for wanted in pauses {
            assert_eq!(watch.pause(), wanted);
            watch.sample();
        }
    }
}
