//! Detects gaps in service, such as a restart or a fail-over of the server.
//!
//! The input is completed transactions and connection events, almost in the order of time. The
//! output is the gaps, and the time since which no transaction was completed. If this time is too
//! long ago, the driver gives up the run.

use serde::{Deserialize, Serialize};

use crate::driver::clock::SECOND_US;

/// Shortest gap that is reported.
const MIN_US: u64 = SECOND_US;

/// An interval in which no transaction was completed and at least one connection was down. If the
/// run is given up although all connections are open, its last interval without an answer is a gap,
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// End of the last transaction before the gap, in microseconds since the start of the run.
    pub from_us: u64,
    /// End of the first transaction after the gap, or the end of the run.
    pub to_us: u64,
    /// Largest number of connections that were down at the same time.
    pub lost: u32,
}

/// Collects the gaps of a run.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    found: Vec<Gap>,
    last_done_us: u64,
    /// Number of connections that were lost and are not open again.
    down: u32,
    /// Largest value of `down` since the last completed transaction.
    most_down: u32,
    /// Number of reconnected connections on which the first transaction is in progress.
    unproven: u32,
    /// Start of the current wait, in which connections were lost or unproven and no transaction was
    /// completed.
    since_us: Option<u64>,
    /// True when the run ends because no transaction was completed for too long.
    is_given_up: bool,
}

impl Gaps {
    /// Records a completed transaction.
    pub fn on_done(&mut self, at_us: u64) {
        if at_us <= self.last_done_us {
            return;
        }
        self.end(at_us);
        self.last_done_us = at_us;
        self.is_given_up = false;
        // A gap that begins now includes the connections that are down already.
        self.most_down = self.down;
        self.since_us = self.is_waiting().then_some(at_us);
    }

    /// Records a lost connection.
    pub fn on_lost(&mut self, at_us: u64) {
        self.down += 1;
        self.most_down = self.most_down.max(self.down);
        self.since_us.get_or_insert(at_us.max(self.last_done_us));
    }

    /// Records that a lost connection was opened again.
    pub fn on_reopened(&mut self) {
        self.down = self.down.saturating_sub(1);
    }

    /// Records that a lost connection will not be opened again.
    pub fn on_abandoned(&mut self) {
        self.down = self.down.saturating_sub(1);
    }

    /// Records the start of the first transaction after a reconnect. A log-in alone proves little:
    /// the server may accept connections but answer no statement.
    pub fn on_first_begun(&mut self, at_us: u64) {
        self.unproven += 1;
        self.since_us.get_or_insert(at_us.max(self.last_done_us));
    }

    /// Records the end of the first transaction after a reconnect. If the transaction ends with the
    /// loss of its connection, the caller also calls [`on_lost`](Self::on_lost).
    pub fn on_first_ended(&mut self) {
        self.unproven = self.unproven.saturating_sub(1);
    }

    /// Time since which no transaction was completed, if connections are down, or if first
    /// transactions after a reconnect have no answer.
    #[must_use]
    pub fn down_since_us(&self) -> Option<u64> {
        self.since_us.filter(|_| self.is_waiting())
    }

    /// Time since which no terminal was served. It is the earlier of
    /// [`down_since_us`](Self::down_since_us) and the start of the silence: the time `asked_us` of
    /// the oldest request without an answer, or the last completed transaction if that is later. A
    /// single long request does not count while other requests are answered, because it may wait
    /// for a lock.
    #[must_use]
    pub fn unserved_since_us(&self, asked_us: Option<u64>) -> Option<u64> {
        let silent_since_us = asked_us.map(|at_us| at_us.max(self.last_done_us));
        [self.down_since_us(), silent_since_us]
            .into_iter()
            .flatten()
            .min()
    }

    /// Records that the run ends for lack of service. The current wait becomes a gap even if no
    /// connection was lost.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Whether connections are down or unproven. A connection that is open again without a
    /// transaction does not count, because its terminal may think for longer than a fail-over
    /// takes.
    fn is_waiting(&self) -> bool {
        self.down > 0 || self.unproven > 0
    }

    /// The gaps of a run that ends at `end_us`.
    #[must_use]
    pub fn finish(mut self, end_us: u64) -> Vec<Gap> {
        self.end(end_us);
        self.found
    }

    fn end(&mut self, to_us: u64) {
        let Self {
            last_done_us,
            most_down,
            is_given_up,
            ..
        } = *self;
        if (most_down > 0 || is_given_up) && to_us.saturating_sub(last_done_us) >= MIN_US {
            self.found.push(Gap {
                from_us: last_done_us,
                to_us,
                lost: most_down,
            });
        }
    }
}

/// Merges the gaps of `hosts` load hosts. A gap of the run is an interval in which all hosts have a
/// gap.
#[must_use]
pub fn merged(gaps: Vec<Gap>, hosts: u32) -> Vec<Gap> {
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for gap in &gaps {
        edges.extend([(gap.from_us, 1), (gap.to_us, -1)]);
    }
    // At the same instant, ends sort before starts.
    edges.sort_unstable();
    let (mut open, mut found, mut since) = (0, Vec::new(), None);
    for (at_us, change) in edges {
        open += change;
        match since {
            None if open == i64::from(hosts) => since = Some(at_us),
            Some(from_us) if open < i64::from(hosts) => {
                let touching = gaps
                    .iter()
                    .filter(|gap| gap.from_us <= from_us && gap.to_us >= at_us);
                let lost = touching.map(|gap| gap.lost).sum();
                let gap = Gap {
                    from_us,
                    to_us: at_us,
                    lost,
                };
                found.extend((at_us - from_us >= MIN_US).then_some(gap));
                since = None;
            }
            None | Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SECOND_US;

    fn gap(from_us: u64, to_us: u64, lost: u32) -> Gap {
        Gap {
            from_us,
            to_us,
            lost,
        }
    }

    #[test]
    fn a_gap_lies_between_the_completed_transactions_around_a_loss() {
        let mut gaps = Gaps::default();
        gaps.on_done(4 * S);
        gaps.on_lost(5 * S);
        gaps.on_lost(5 * S);
        gaps.on_reopened();
        gaps.on_reopened();
        gaps.on_done(9 * S + S / 2);
        gaps.on_done(9 * S); // A sample of another terminal, recorded late.
        gaps.on_done(20 * S); // A slow transaction without a loss is not a gap.
        gaps.on_lost(20 * S);
        gaps.on_reopened();
        gaps.on_done(20 * S + S / 2); // Shorter than the limit.
        gaps.on_lost(21 * S);
        let found = gaps.finish(30 * S);
        let half = S / 2;
        assert_eq!(
            found,
            [gap(4 * S, 9 * S + half, 2), gap(20 * S + half, 30 * S, 1)]
        );
    }

    /// The processes of a server end one after the other. Some of them still commit after the first
    /// losses.
    #[test]
    fn connections_lost_before_the_last_commit_count_as_down() {
        let mut gaps = Gaps::default();
        gaps.on_done(4 * S);
        for at in 1..=9 {
            gaps.on_lost(4 * S + at);
            gaps.on_done(4 * S + 10 * at);
        }
        assert_eq!(gaps.down_since_us(), Some(4 * S + 90));
        assert_eq!(gaps.finish(9 * S), [gap(4 * S + 90, 9 * S, 9)]);
    }

    #[test]
    fn a_connection_that_is_open_again_does_not_end_the_run() {
        let mut gaps = Gaps::default();
        gaps.on_done(S);
        // The connection is lost long after the last commit, because its terminal has a long think
        // time.
        gaps.on_lost(90 * S);
        assert_eq!(gaps.down_since_us(), Some(90 * S));
        gaps.on_reopened();
        assert_eq!(gaps.down_since_us(), None);
        // A server that accepts connections but completes no transaction is down.
        gaps.on_lost(95 * S);
        assert_eq!(gaps.down_since_us(), Some(90 * S));
        gaps.on_reopened();
        gaps.on_done(99 * S);
        gaps.on_lost(100 * S);
        assert_eq!(gaps.down_since_us(), Some(100 * S));
    }

    /// A proxy, or a primary that hangs, accepts every log-in and blocks every first statement.
    #[test]
    fn a_server_that_accepts_connections_and_does_not_answer_is_down() {
        let mut gaps = Gaps::default();
        gaps.on_done(4 * S);
        gaps.on_lost(5 * S);
        gaps.on_lost(6 * S);
        for at in [7 * S, 8 * S] {
            gaps.on_reopened();
            gaps.on_first_begun(at);
        }
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // One connection is lost in its first transaction, and opened again.
        gaps.on_lost(30 * S);
        gaps.on_first_ended();
        gaps.on_reopened();
        gaps.on_first_begun(31 * S);
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // That transaction ends with an error. The transaction of the other connection has no
        // answer yet.
        gaps.on_first_ended();
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // A commit ends the wait, and the next wait begins.
        gaps.on_done(33 * S);
        assert_eq!(gaps.down_since_us(), Some(33 * S));
        gaps.on_first_ended();
        assert_eq!(gaps.down_since_us(), None);
        // No connection was lost since then, so this wait is not a gap.
        assert_eq!(gaps.finish(50 * S), [gap(4 * S, 33 * S, 2)]);
    }

    /// Between the log-in and the first transaction, other terminals commit. Then all of them hang.
    #[test]
    fn a_first_transaction_without_an_answer_begins_a_wait() {
        let mut gaps = Gaps::default();
        gaps.on_lost(S);
        gaps.on_reopened();
        gaps.on_done(2 * S);
        assert_eq!(gaps.down_since_us(), None);
        gaps.on_first_begun(7 * S);
        assert_eq!(gaps.down_since_us(), Some(7 * S));
    }

    #[test]
    fn an_abandoned_connection_is_not_down() {
        let mut gaps = Gaps::default();
        gaps.on_done(S);
        gaps.on_lost(2 * S);
        gaps.on_abandoned();
        assert_eq!(gaps.down_since_us(), None);
        gaps.on_done(2 * S + 1);
        gaps.on_done(9 * S); // A slow transaction while nothing is down.
        // The wait in which the connection was lost is a gap.
        assert_eq!(gaps.finish(9 * S), [gap(S, 2 * S + 1, 1)]);
    }

    #[test]
    fn a_request_without_an_answer_counts_while_no_other_is_answered() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.unserved_since_us(None), None);
        assert_eq!(gaps.unserved_since_us(Some(7)), Some(7));
        gaps.on_done(4 * S);
        // The request was sent before the last completed transaction, then after it.
        assert_eq!(gaps.unserved_since_us(Some(S)), Some(4 * S));
        assert_eq!(gaps.unserved_since_us(Some(5 * S)), Some(5 * S));
        // All terminals are in their think times.
        assert_eq!(gaps.unserved_since_us(None), None);
        gaps.on_lost(6 * S);
        assert_eq!(gaps.unserved_since_us(Some(8 * S)), Some(6 * S));
        assert_eq!(gaps.unserved_since_us(Some(5 * S)), Some(5 * S));
    }

    #[test]
    fn a_wait_is_a_gap_if_the_run_is_given_up_for_it() {
        let mut slow = Gaps::default();
        slow.on_done(2 * S);
        let mut silent = slow.clone();
        slow.on_done(9 * S);
        assert_eq!(slow.finish(9 * S), []);
        silent.give_up();
        let mut late = silent.clone();
        assert_eq!(silent.finish(9 * S), [gap(2 * S, 9 * S, 0)]);
        // The server answers in the drain after all.
        late.on_done(8 * S);
        assert_eq!(late.finish(11 * S), [gap(2 * S, 8 * S, 0)]);
    }

    #[test]
    fn a_gap_of_all_hosts_is_a_gap_of_the_run() {
        let all = vec![
            gap(1_000_000, 5_000_000, 3),
            gap(2_000_000, 6_000_000, 4),
            gap(8_000_000, 9_000_000, 1),
        ];
        assert_eq!(merged(all.clone(), 2), [gap(2_000_000, 5_000_000, 7)]);
        assert_eq!(merged(all[..1].to_vec(), 1), all[..1]);
        assert!(merged(all, 3).is_empty());
    }
}
