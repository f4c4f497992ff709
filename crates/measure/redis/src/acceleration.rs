//! The proof that a run under Saiga was accelerated, asked of the server while it works.
//!
//! A server counts upgrades for its whole life, but bytes only as long as a connection
//! is open, and redis-benchmark closes all of them at its end: so we look while it runs.

use std::time::Duration;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_experiment::workload::Measured;

/// Between two looks at a server: a look costs some 10 µs of our own CPU time.
pub(crate) const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The looks at the servers that serve one run.
pub(crate) struct ChannelWatch<'a> {
    probe: &'a dyn AccelerationProbe,
    clients: u32,
    seen: Vec<Seen>,
}

/// What one server said at its best, and how many upgrades it had before the run: links
/// between servers are no proof that clients are accelerated.
struct Seen {
    pid: u32,
    before: u64,
    best: Result<Acceleration, String>,
}

impl<'a> ChannelWatch<'a> {
    /// For the servers `pids` that are joined to others when `joined`.
    pub(crate) fn new(
        probe: &'a dyn AccelerationProbe,
        pids: &[u32],
        clients: u32,
        joined: bool,
    ) -> Self {
        let before = |pid| {
            let seen = probe.observe(pid, clients).ok();
            seen.map_or(0, |seen| seen.upgraded_sockets)
        };
        let seen = |&pid: &u32| Seen {
            pid,
            before: if joined { before(pid) } else { 0 },
            best: Err("its server was never asked".to_owned()),
        };
        Self {
            probe,
            clients,
            seen: pids.iter().map(seen).collect(),
        }
    }

    /// Looks once; the most that was ever seen stays.
    pub(crate) fn look(&mut self) {
        for Seen { pid, best, .. } in &mut self.seen {
            let now = self.probe.observe(*pid, self.clients);
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

    /// All servers together, without the upgrades of before.
    fn total(&self) -> Result<Acceleration, String> {
        let mut total = Acceleration {
            upgraded_sockets: 0,
            channel_bytes: 0,
            tcp_bytes: 0,
        };
        for Seen { before, best, .. } in &self.seen {
            let best = best.clone()?;
            total.upgraded_sockets += best.upgraded_sockets.saturating_sub(*before);
            total.channel_bytes += best.channel_bytes;
            total.tcp_bytes += best.tcp_bytes;
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
                "not accelerated: {upgraded_sockets} of the server's {} connections were \
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

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
        let mut watch = ChannelWatch::new(&probe, &[1], 50, false);
        (0..looks).for_each(|_| watch.look());
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
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
        let mut watch = ChannelWatch::new(&probe, &[1, 2], 50, true);
        watch.look();
        let total = watch.total().unwrap();
        assert_eq!((total.upgraded_sockets, total.channel_bytes), (23, 200));
    }

    #[test]
    fn without_proof_the_reason_is_given() {
        let few = invalid_after(vec![Ok((24, 9000, 0))]).unwrap();
        assert!(
            few.starts_with("not accelerated: 24 of the server's 50"),
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
        assert_eq!(never, "not accelerated: its server was never asked");
    }
}
