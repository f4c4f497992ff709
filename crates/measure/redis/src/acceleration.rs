//! The looks at the servers of a run under Saiga, or at its client, while the load runs.

use std::time::{Duration, Instant};

use saiga_experiment::acceleration::{AccelerationProbe, Looks, Moved, judge};
use saiga_experiment::workload::Measured;

use crate::load::RedisLoad;

/// The longest pause between two looks at a server: a look costs some 10 µs of our own CPU time.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// The same with thousands of idle connections, where a look takes half a millisecond.
const LONG_LOOK_PAUSE: Duration = Duration::from_millis(200);
/// The first pause is this part of the longest, and each one is twice as long as the one before:
/// a load of a few milliseconds is seen as well.
const FIRST_PART: u32 = 10;

/// Connections of a server besides those of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Others {
    /// Whether it is joined to other servers.
    pub(crate) joined: bool,
    /// Clients that were there before and rest.
    pub(crate) idle: u32,
}

impl Others {
    /// For a process with no other connections.
    pub(crate) const NONE: Self = Self {
        joined: false,
        idle: 0,
    };
}

/// The looks at the servers that serve one run, or at its client.
pub(crate) struct ChannelWatch<'a> {
    probe: &'a dyn AccelerationProbe,
    clients: u32,
    idle: u32,
    began: Instant,
    /// How many looks there were.
    count: u32,
    /// Later looks saw something else than the load.
    end_s: f64,
    /// What each process said. Links between servers and idle connections, which were there
    /// before, are no proof that clients are accelerated.
    seen: Vec<(u32, Looks)>,
    /// What these had moved before the load is not known, for this reason.
    unseen: Option<String>,
}

impl<'a> ChannelWatch<'a> {
    /// For the processes `pids`, which share the load's `clients` connections and have `others`
    /// besides.
    pub(crate) fn new(
        probe: &'a dyn AccelerationProbe,
        pids: &[u32],
        clients: u32,
        others: Others,
    ) -> Self {
        let Others { joined, idle } = others;
        let mut unseen = None;
        let mut before = |pid| {
            let has_others = joined || idle > 0;
            let asked = has_others.then(|| probe.observe(pid, reach(clients, idle)));
            asked.transpose().unwrap_or_else(|why| {
                unseen = Some(why);
                None
            })
        };
        let looks = |&pid: &u32| (pid, Looks::since(before(pid).unwrap_or_default()));
        let seen = pids.iter().map(looks).collect();
        Self {
            probe,
            clients,
            idle,
            began: Instant::now(),
            count: 0,
            end_s: f64::INFINITY,
            seen,
            unseen,
        }
    }

    fn longest_pause(&self) -> Duration {
        if self.idle > 0 {
            LONG_LOOK_PAUSE
        } else {
            LOOK_PAUSE
        }
    }

    /// How long to wait before the next look, for the looks themselves to cost nothing.
    pub(crate) fn pause(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.count).unwrap_or(FIRST_PART);
        self.longest_pause() / FIRST_PART * doubled.min(FIRST_PART)
    }

    /// Looks once.
    pub(crate) fn look(&mut self) {
        self.count = self.count.saturating_add(1);
        let at_s = self.began.elapsed().as_secs_f64();
        for (pid, looks) in &mut self.seen {
            let answer = self.probe.observe(*pid, reach(self.clients, self.idle));
            looks.add(at_s, answer);
        }
    }

    /// Tells that the load was over then, but not yet its process.
    pub(crate) fn end_at(&mut self, end: Instant) {
        self.end_s = end.saturating_duration_since(self.began).as_secs_f64();
    }

    /// Connections that were upgraded and bytes of all processes together.
    fn moved(&self) -> Result<(u64, Moved), String> {
        if let Some(why) = &self.unseen {
            return Err(format!("what went before the load is not known: {why}"));
        }
        let mut total = (0, Moved::default());
        for (_, looks) in &self.seen {
            let (upgraded, moved) = looks.moved_within(&(f64::NEG_INFINITY..self.end_s))?;
            total = (total.0 + upgraded, total.1.and(moved));
        }
        Ok(total)
    }

    /// Adds what was seen of `load` to the run, which does not count unless nearly all bytes went
    /// by channel, but for the beginning: a connection is on TCP until it has earned its channel
    /// (DESIGN.md).
    pub(crate) fn judge(self, measured: &mut Measured, load: &RedisLoad) {
        let beginning = u64::from(self.clients) * load.least_bytes_at_first();
        judge(measured, self.moved(), beginning, self.clients);
    }
}

/// Descriptors to look through for those of `clients` behind `idle` ones: each sixty-four of
/// these may have one of the library's between them.
fn reach(clients: u32, idle: u32) -> u32 {
    clients.saturating_add(idle).saturating_add(idle / 32)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use saiga_experiment::acceleration::Acceleration;

    use super::*;
    use crate::load::Test;

    const JOINED: Others = Others {
        joined: true,
        idle: 0,
    };

    /// What a process says: upgraded connections, bytes by channel and by TCP.
    type Answer = Result<(u64, u64, u64), &'static str>;

    /// Answers in the order in which they were given.
    struct Script(RefCell<std::vec::IntoIter<Answer>>);

    impl Script {
        fn new(answers: Vec<Answer>) -> Self {
            Self(RefCell::new(answers.into_iter()))
        }
    }

    impl AccelerationProbe for Script {
        fn observe(&self, _pid: u32, _clients: u32) -> Result<Acceleration, String> {
            let said = self.0.borrow_mut().next().unwrap();
            let (upgraded_sockets, channel_bytes, tcp_bytes) = said?;
            Ok(Acceleration {
                upgraded_sockets,
                channel_bytes,
                tcp_bytes,
            })
        }
    }

    /// Why a run with fifty clients is told that it does not count; looks at its one server have
    /// these answers.
    fn invalid_after(looks: &[Answer]) -> Option<String> {
        judged_after(looks).invalid
    }

    fn judged_after(looks: &[Answer]) -> Measured {
        let probe = Script::new(looks.to_vec());
        let mut watch = ChannelWatch::new(&probe, &[1], 50, Others::NONE);
        looks.iter().for_each(|_| watch.look());
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
    fn half_of_the_connections_and_some_bytes_by_channel_are_no_proof() {
        let late = [Ok((25, 0, 120_000)), Ok((25, 10_000, 135_600))];
        assert_eq!(
            invalid_after(&late).unwrap(),
            "not accelerated: 10000 bytes went by channel and 135600 by TCP (5000 of these before \
             connections can be upgraded), and 25 of the client's 50 connections were upgraded"
        );
        let few = [Ok((5, 0, 105_600)), Ok((5, 300_000, 138_933))];
        assert_eq!(
            invalid_after(&few),
            None,
            "nine tenths are, of whatever connections"
        );
    }

    /// 64 requests of 33 bytes at least on each connection. The share that is told is of all bytes.
    #[test]
    fn bytes_by_tcp_before_connections_have_earned_their_channels_do_not_count() {
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
    fn a_look_after_the_load_does_not_count() {
        let probe = Script::new(vec![Ok((8, 9000, 0)), Ok((8, 9000, 9_000_000))]);
        let mut watch = ChannelWatch::new(&probe, &[1], 8, Others::NONE);
        watch.look();
        watch.end_at(Instant::now());
        watch.look();
        let moved = Moved {
            channel_bytes: 9000,
            tcp_bytes: 0,
        };
        assert_eq!(watch.moved(), Ok((8, moved)));
    }

    #[test]
    fn several_servers_share_the_clients_and_links_of_before_do_not_count() {
        // Two servers: a look at each before the run, then one during it.
        let answers = vec![
            Ok((3, 100, 10)),
            Ok((7, 100, 10)),
            Ok((13, 300, 20)),
            Ok((20, 400, 30)),
        ];
        let probe = Script::new(answers);
        let mut watch = ChannelWatch::new(&probe, &[1, 2], 50, JOINED);
        watch.look();
        let moved = Moved {
            channel_bytes: 500,
            tcp_bytes: 30,
        };
        assert_eq!(watch.moved(), Ok((23, moved)));
    }

    #[test]
    fn bytes_of_idle_connections_are_no_proof() {
        let watched = |during| {
            let probe = Script::new(vec![Ok((1000, 5000, 700)), during]);
            let others = Others {
                joined: false,
                idle: 1000,
            };
            let mut watch = ChannelWatch::new(&probe, &[1], 50, others);
            watch.look();
            watch.moved().unwrap()
        };
        assert_eq!(watched(Ok((1000, 5000, 700))), (0, Moved::default()));
        assert_eq!(watched(Ok((1050, 5900, 700))).1.channel_bytes, 900);
    }

    #[test]
    fn what_moved_before_the_load_must_be_known() {
        let probe = Script::new(vec![Err("no page"), Ok((53, 9000, 0))]);
        let mut watch = ChannelWatch::new(&probe, &[1], 50, JOINED);
        watch.look();
        let why = watch.moved().unwrap_err();
        assert_eq!(why, "what went before the load is not known: no page");
    }

    #[test]
    fn a_process_that_cannot_be_asked_gives_the_reason() {
        let mute = invalid_after(&[Err("no page"), Err("no page")]);
        assert_eq!(mute.unwrap(), "not accelerated: no page");
        let never = invalid_after(&[]).unwrap();
        assert!(
            never.starts_with("not accelerated: the load ended before"),
            "{never}"
        );
    }

    #[test]
    fn looks_come_at_first_more_often() {
        let probe = Script::new(vec![Ok((0, 0, 0)); 6]);
        let mut watch = ChannelWatch::new(&probe, &[1], 50, Others::NONE);
        let pauses = [5, 10, 20, 40, 50, 50].map(Duration::from_millis);
        for wanted in pauses {
            assert_eq!(watch.pause(), wanted);
            watch.look();
        }
    }
}
