//! The proof that a run under Saiga was accelerated, asked of one end while it works.
//!
//! A process counts upgrades for its whole life, but bytes only as long as a connection
//! is open, and redis-benchmark closes all of them at its end: so we look while it runs.

use std::time::Duration;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_experiment::workload::Measured;

/// Between two looks at a server: a look costs some 10 µs of our own CPU time.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// The same with thousands of idle connections, where a look takes half a millisecond.
const LONG_LOOK_PAUSE: Duration = Duration::from_millis(200);
const NOTHING: Acceleration = Acceleration {
    upgraded_sockets: 0,
    channel_bytes: 0,
    tcp_bytes: 0,
};

/// Connections of a server besides those of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Others {
    /// Whether it is joined to other servers.
    pub(crate) joined: bool,
    /// Clients that were there before and rest.
    pub(crate) idle: u32,
}

impl Others {
    /// For a process that talks to nobody else.
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
    seen: Vec<Seen>,
}

/// What one process said at its best, and what it said before the run: links between servers
/// and idle connections are no proof that clients are accelerated.
struct Seen {
    pid: u32,
    before: Acceleration,
    best: Result<Acceleration, String>,
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
        let before = |pid| {
            let seen = probe.observe(pid, reach(clients, idle));
            let seen = seen.unwrap_or(NOTHING);
            // Links go on talking during the run; only their upgrades are of before.
            if idle > 0 {
                seen
            } else {
                let upgraded_sockets = seen.upgraded_sockets;
                Acceleration {
                    upgraded_sockets,
                    ..NOTHING
                }
            }
        };
        let seen = |&pid: &u32| Seen {
            pid,
            before: if joined || idle > 0 {
                before(pid)
            } else {
                NOTHING
            },
            best: Err("nobody was asked".to_owned()),
        };
        Self {
            probe,
            clients,
            idle,
            seen: pids.iter().map(seen).collect(),
        }
    }

    /// How long to wait between two looks, for the looks themselves to cost nothing.
    pub(crate) fn pause(&self) -> Duration {
        if self.idle > 0 {
            LONG_LOOK_PAUSE
        } else {
            LOOK_PAUSE
        }
    }

    /// Looks once; the most that was ever seen stays.
    pub(crate) fn look(&mut self) {
        for Seen { pid, best, .. } in &mut self.seen {
            let now = self.probe.observe(*pid, reach(self.clients, self.idle));
            *best = match (best.clone(), now) {
                (Ok(before), Ok(now)) => Ok(Acceleration {
                    upgraded_sockets: before.upgraded_sockets.max(now.upgraded_sockets),
                    channel_bytes: before.channel_bytes.max(now.channel_bytes),
                    tcp_bytes: before.tcp_bytes.max(now.tcp_bytes),
                }),
                (Err(_), Ok(now)) => Ok(now),
                (Ok(before), Err(_)) => Ok(before),
                (Err(_), Err(now)) => Err(now),
            };
        }
    }

    /// All of them together, without what was before.
    fn total(&self) -> Result<Acceleration, String> {
        let mut total = NOTHING;
        for Seen { before, best, .. } in &self.seen {
            let best = best.clone()?;
            let since = |of: fn(&Acceleration) -> u64| of(&best).saturating_sub(of(before));
            total.upgraded_sockets += since(|seen| seen.upgraded_sockets);
            total.channel_bytes += since(|seen| seen.channel_bytes);
            total.tcp_bytes += since(|seen| seen.tcp_bytes);
        }
        Ok(total)
    }

    /// Adds what was seen to the run, and makes it invalid unless at least half of the
    /// clients' connections were upgraded and their bytes went by channel: they were counted
    /// there, or less than half of `bytes`, the least traffic of the run, was counted on TCP.
    pub(crate) fn judge(self, measured: &mut Measured, bytes: u64) {
        let seen = match self.total() {
            Ok(seen) => seen,
            Err(reason) => {
                measured.invalid = Some(format!("not accelerated: {reason}"));
                return;
            }
        };
        let Acceleration {
            upgraded_sockets,
            channel_bytes,
            tcp_bytes,
        } = seen;
        let by_channel = channel_bytes > 0 || tcp_bytes < bytes / 2;
        if upgraded_sockets * 2 < u64::from(self.clients) || !by_channel {
            measured.invalid = Some(format!(
                "not accelerated: {upgraded_sockets} of the load's {} connections were \
                 upgraded, {channel_bytes} bytes were seen in channels and {tcp_bytes} on TCP",
                self.clients
            ));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let [sockets, seen_bytes] = [upgraded_sockets, channel_bytes].map(|count| count as f64);
        measured
            .metrics
            .insert("upgraded_sockets".to_owned(), sockets);
        measured
            .metrics
            .insert("channel_bytes_seen".to_owned(), seen_bytes);
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

    use super::*;

    const JOINED: Others = Others {
        joined: true,
        idle: 0,
    };

    /// Answers what it was given, the last first.
    struct Script(RefCell<Vec<Result<Acceleration, String>>>);

    impl AccelerationProbe for Script {
        fn observe(&self, _pid: u32, _clients: u32) -> Result<Acceleration, String> {
            self.0.borrow_mut().pop().unwrap()
        }
    }

    fn invalid_after(answers: Vec<Result<(u64, u64, u64), &str>>) -> Option<String> {
        let looks = answers.len();
        let answer = |one: Result<(u64, u64, u64), &str>| {
            one.map_err(str::to_owned)
                .map(
                    |(upgraded_sockets, channel_bytes, tcp_bytes)| Acceleration {
                        upgraded_sockets,
                        channel_bytes,
                        tcp_bytes,
                    },
                )
        };
        let probe = Script(RefCell::new(
            answers.into_iter().rev().map(answer).collect(),
        ));
        let mut watch = ChannelWatch::new(&probe, &[1], 50, Others::NONE);
        (0..looks).for_each(|_| watch.look());
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        watch.judge(&mut measured, 20_000);
        measured.invalid
    }

    #[test]
    fn upgrades_and_bytes_seen_at_any_moment_are_the_proof() {
        let looks = vec![Ok((0, 0, 0)), Ok((50, 9000, 20_000)), Ok((50, 0, 0))];
        assert_eq!(invalid_after(looks), None);
        assert_eq!(invalid_after(vec![Ok((25, 1, 0)), Err("gone")]), None);
    }

    #[test]
    fn what_is_missing_on_tcp_went_by_channel() {
        assert_eq!(invalid_after(vec![Ok((50, 0, 9_999))]), None);
        assert!(invalid_after(vec![Ok((50, 0, 10_000))]).is_some());
    }

    #[test]
    fn several_servers_share_the_clients_and_links_of_before_do_not_count() {
        let seen = |upgraded_sockets| {
            Ok(Acceleration {
                upgraded_sockets,
                channel_bytes: 100,
                tcp_bytes: 0,
            })
        };
        // Two servers: a look at each before the run, then one during it.
        let answers = vec![seen(20), seen(13), seen(7), seen(3)];
        let probe = Script(RefCell::new(answers));
        let mut watch = ChannelWatch::new(&probe, &[1, 2], 50, JOINED);
        watch.look();
        let total = watch.total().unwrap();
        assert_eq!((total.upgraded_sockets, total.channel_bytes), (23, 200));
    }

    #[test]
    fn bytes_of_idle_connections_are_no_proof() {
        let seen = |upgraded_sockets, channel_bytes| {
            Ok(Acceleration {
                upgraded_sockets,
                channel_bytes,
                tcp_bytes: 700,
            })
        };
        let watched = |during| {
            let probe = Script(RefCell::new(vec![during, seen(1000, 5000)]));
            let others = Others {
                joined: false,
                idle: 1000,
            };
            let mut watch = ChannelWatch::new(&probe, &[1], 50, others);
            watch.look();
            watch.total().unwrap()
        };
        assert_eq!(watched(seen(1000, 5000)), NOTHING);
        assert_eq!(watched(seen(1050, 5900)).channel_bytes, 900);
    }

    #[test]
    fn without_proof_the_reason_is_given() {
        let few = invalid_after(vec![Ok((24, 9000, 0))]).unwrap();
        assert!(
            few.starts_with("not accelerated: 24 of the load's 50"),
            "{few}"
        );
        let mute = invalid_after(vec![Ok((50, 0, 60_000))]).unwrap();
        assert!(
            mute.ends_with("0 bytes were seen in channels and 60000 on TCP"),
            "{mute}"
        );
        assert_eq!(
            invalid_after(vec![Err("no page")]).unwrap(),
            "not accelerated: no page"
        );
        let never = invalid_after(vec![]).unwrap();
        assert_eq!(never, "not accelerated: nobody was asked");
    }
}
