//! Times in which nothing was done although terminals wanted to: a server that is restarted, a
//! fail-over.

use serde::{Deserialize, Serialize};

use crate::driver::clock::SECOND_US;

/// A shorter pause is none.
const LEAST_US: u64 = SECOND_US;

/// A time without a single transaction that was done, in which connections were down; or all of them
/// were open, and the run was given up for want of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When the last transaction before it was done, since the start of the run.
    pub from_us: u64,
    /// When the first one after it was; or the end of the run.
    pub to_us: u64,
    /// Connections that were down in it at the same time, at most.
    pub lost: u32,
}

/// Finds them, from transactions and connections that come and go in the order of time, nearly.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    found: Vec<Gap>,
    last_done_us: u64,
    /// Connections that were lost and are not open again.
    down: u32,
    /// The most of them since the last transaction was done.
    most_down: u32,
    /// Connections that are open again and have not ended the first transaction they were asked for.
    on_trial: u32,
    /// Since when nothing was done and connections were lost, or on trial.
    since_us: Option<u64>,
    /// Nothing was done for so long that the run ends.
    is_given_up: bool,
}

impl Gaps {
    /// A transaction was done.
    pub fn on_done(&mut self, at_us: u64) {
        if at_us <= self.last_done_us {
            return;
        }
        self.end(at_us);
        self.last_done_us = at_us;
        self.is_given_up = false;
        // Those that are down already belong to the gap that may begin.
        self.most_down = self.down;
        self.since_us = self.is_waiting().then_some(at_us);
    }

    /// A connection was lost.
    pub fn on_lost(&mut self, at_us: u64) {
        self.down += 1;
        self.most_down = self.most_down.max(self.down);
        self.since_us.get_or_insert(at_us.max(self.last_done_us));
    }

    /// A connection that was lost is open again.
    pub fn on_opened(&mut self) {
        self.down = self.down.saturating_sub(1);
    }

    /// A connection that was lost is not wanted any more.
    pub fn on_left(&mut self) {
        self.down = self.down.saturating_sub(1);
    }

    /// The first transaction on a connection that is open again begins: a log-in proves little, who
    /// answers it may still be silent to every statement.
    pub fn on_begun(&mut self, at_us: u64) {
        self.on_trial += 1;
        self.since_us.get_or_insert(at_us.max(self.last_done_us));
    }

    /// That transaction has ended, in whatever way; a loss is told besides.
    pub fn on_ended(&mut self) {
        self.on_trial = self.on_trial.saturating_sub(1);
    }

    /// While connections are down, or open again and without an answer: since when nothing was done
    /// after the first of them was lost.
    #[must_use]
    pub fn down_since_us(&self) -> Option<u64> {
        self.since_us.filter(|_| self.is_waiting())
    }

    /// Since when nothing was done although it was wanted: connections are down or on trial, or an
    /// answer is missing since `asked_us`, the longest of all. One that has none for long does not
    /// count as long as others are served: it may wait for a lock.
    #[must_use]
    pub fn unserved_since_us(&self, asked_us: Option<u64>) -> Option<u64> {
        let silent_since_us = asked_us.map(|at_us| at_us.max(self.last_done_us));
        [self.down_since_us(), silent_since_us]
            .into_iter()
            .flatten()
            .min()
    }

    /// The run ends because nothing is done any more: that is a gap, whether or not connections were
    /// lost.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// One that is open again and was not asked for anything yet does not count: its terminal may
    /// think for longer than a fail-over takes.
    fn is_waiting(&self) -> bool {
        self.down > 0 || self.on_trial > 0
    }

    /// All of a run that ends at `end_us`.
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
        if (most_down > 0 || is_given_up) && to_us.saturating_sub(last_done_us) >= LEAST_US {
            self.found.push(Gap {
                from_us: last_done_us,
                to_us,
                lost: most_down,
            });
        }
    }
}

/// Gaps of a run on `hosts` hosts: where none of them had anything done.
#[must_use]
pub fn merged(gaps: Vec<Gap>, hosts: u32) -> Vec<Gap> {
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for gap in &gaps {
        edges.extend([(gap.from_us, 1), (gap.to_us, -1)]);
    }
    // Where one ends and the next begins at the same instant, it ends first.
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
                found.extend((at_us - from_us >= LEAST_US).then_some(gap));
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
    fn a_gap_is_between_the_last_and_the_next_that_was_done() {
        let mut gaps = Gaps::default();
        gaps.on_done(4 * S);
        gaps.on_lost(5 * S);
        gaps.on_lost(5 * S);
        gaps.on_opened();
        gaps.on_opened();
        gaps.on_done(9 * S + S / 2);
        gaps.on_done(9 * S); // Of another terminal, told a little late.
        gaps.on_done(20 * S); // Slow, but nothing was lost.
        gaps.on_lost(20 * S);
        gaps.on_opened();
        gaps.on_done(20 * S + S / 2); // One of several connections: no gap.
        gaps.on_lost(21 * S);
        let found = gaps.finish(30 * S);
        let half = S / 2;
        assert_eq!(
            found,
            [gap(4 * S, 9 * S + half, 2), gap(20 * S + half, 30 * S, 1)]
        );
    }

    /// A server's processes die one after the other: some still commit when the first ones are gone.
    #[test]
    fn connections_lost_before_the_last_commit_are_down_all_the_same() {
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
    fn one_connection_that_is_open_again_is_no_reason_to_give_up() {
        let mut gaps = Gaps::default();
        gaps.on_done(S);
        // Long after the last commit, of a terminal that thinks.
        gaps.on_lost(90 * S);
        assert_eq!(gaps.down_since_us(), Some(90 * S));
        gaps.on_opened();
        assert_eq!(gaps.down_since_us(), None);
        // Who lets everybody in and does nothing is gone all the same.
        gaps.on_lost(95 * S);
        assert_eq!(gaps.down_since_us(), Some(90 * S));
        gaps.on_opened();
        gaps.on_done(99 * S);
        gaps.on_lost(100 * S);
        assert_eq!(gaps.down_since_us(), Some(100 * S));
    }

    /// A proxy, or a primary that hangs: every log-in succeeds, and every first statement blocks.
    #[test]
    fn who_lets_everybody_in_and_answers_nobody_is_down_all_the_same() {
        let mut gaps = Gaps::default();
        gaps.on_done(4 * S);
        gaps.on_lost(5 * S);
        gaps.on_lost(6 * S);
        for at in [7 * S, 8 * S] {
            gaps.on_opened();
            gaps.on_begun(at);
        }
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // One of them is lost in its first transaction, and tries once more.
        gaps.on_lost(30 * S);
        gaps.on_ended();
        gaps.on_opened();
        gaps.on_begun(31 * S);
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // It is answered, with an error: the other one still is not.
        gaps.on_ended();
        assert_eq!(gaps.down_since_us(), Some(5 * S));
        // A commit ends the pause, and the next one begins.
        gaps.on_done(33 * S);
        assert_eq!(gaps.down_since_us(), Some(33 * S));
        gaps.on_ended();
        assert_eq!(gaps.down_since_us(), None);
        // Nothing was lost since: no gap.
        assert_eq!(gaps.finish(50 * S), [gap(4 * S, 33 * S, 2)]);
    }

    /// Others have committed between its log-in and its first transaction, and then hang with it.
    #[test]
    fn a_first_transaction_without_an_answer_begins_a_pause() {
        let mut gaps = Gaps::default();
        gaps.on_lost(S);
        gaps.on_opened();
        gaps.on_done(2 * S);
        assert_eq!(gaps.down_since_us(), None);
        gaps.on_begun(7 * S);
        assert_eq!(gaps.down_since_us(), Some(7 * S));
    }

    #[test]
    fn a_connection_that_nobody_wants_any_more_is_not_down() {
        let mut gaps = Gaps::default();
        gaps.on_done(S);
        gaps.on_lost(2 * S);
        gaps.on_left();
        assert_eq!(gaps.down_since_us(), None);
        gaps.on_done(2 * S + 1);
        gaps.on_done(9 * S); // Slow, and nothing is down.
        // The pause in which it was lost is one all the same.
        assert_eq!(gaps.finish(9 * S), [gap(S, 2 * S + 1, 1)]);
    }

    #[test]
    fn who_has_no_answer_is_unserved_as_long_as_nobody_is_served() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.unserved_since_us(None), None);
        assert_eq!(gaps.unserved_since_us(Some(7)), Some(7));
        gaps.on_done(4 * S);
        // Asked before others were served, and after that.
        assert_eq!(gaps.unserved_since_us(Some(S)), Some(4 * S));
        assert_eq!(gaps.unserved_since_us(Some(5 * S)), Some(5 * S));
        // All think.
        assert_eq!(gaps.unserved_since_us(None), None);
        gaps.on_lost(6 * S);
        assert_eq!(gaps.unserved_since_us(Some(8 * S)), Some(6 * S));
        assert_eq!(gaps.unserved_since_us(Some(5 * S)), Some(5 * S));
    }

    #[test]
    fn a_silence_is_a_gap_when_the_run_ends_for_it() {
        let mut slow = Gaps::default();
        slow.on_done(2 * S);
        let mut silent = slow.clone();
        slow.on_done(9 * S);
        assert_eq!(slow.finish(9 * S), []);
        silent.give_up();
        let mut late = silent.clone();
        assert_eq!(silent.finish(9 * S), [gap(2 * S, 9 * S, 0)]);
        // It answers after all, while the run is drained.
        late.on_done(8 * S);
        assert_eq!(late.finish(11 * S), [gap(2 * S, 8 * S, 0)]);
    }

    #[test]
    fn a_gap_of_all_hosts_is_one_of_the_run() {
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
