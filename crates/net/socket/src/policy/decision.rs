//! One wait as a value: told what a waiter observes, it says what the waiter does next.
//!
//! Observations are times (ticks), CPUs, what a yield showed, and the histories of the thread and
//! of its CPU; the answer is an [`Action`]. Nothing here reads a clock, asks the kernel or knows a
//! channel: `policy.rs` carries the actions out on the machine, `policy/simulation.rs` on simulated
//! CPUs. The rules and their reasons are in docs/waiting.md.

use super::cpu_turns::CpuTurns;
use super::history::Histories;
use crate::clock;

/// Interval of a spinner's yields.
const YIELD_EVERY_US: u64 = 4;
/// Turns that other threads may take before the waiter sleeps.
const MOST_TURNS: u32 = 2;
/// A thread that is answered again and again without waiting yields to other threads of its fork
/// group, if there are any, after this time.
const LONG_TURN_US: u64 = 100;
/// A yield that returns within this time let no other thread run.
const ALONE_NS: u64 = 1500;
/// A longer absence counts as foreign unless turns of the fork group or of peers explain it.
const UNEXPLAINED_US: u64 = 300;

/// A moment at which a thread had a CPU: time in ticks, and the CPU's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    pub(crate) cpu: u32,
}

/// What ran on the CPU during a yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YieldOutcome {
    Alone,
    /// Threads that gave the CPU back soon.
    Brief,
    /// A thread that used up its time slice.
    Foreign,
}

impl YieldOutcome {
    /// The outcome of a yield that took `away` ticks. `is_explained`: whether turns of the fork
    /// group or of peers account for them.
    pub(crate) fn of(away: u64, is_explained: impl FnOnce() -> bool) -> YieldOutcome {
        if clock::to_ns(away) < ALONE_NS {
            Self::Alone
        } else if away < clock::us(UNEXPLAINED_US)
            || is_explained()
            || cfg!(feature = "without-foreign")
        {
            Self::Brief
        } else {
            Self::Foreign
        }
    }
}

/// What a waiter does next. The wait is over when an event is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Checks for events again and again for so many ticks, then reports with [`Wait::spun`].
    Spin(u64),
    /// As `Spin`, if fewer threads of the process spin like this than it has CPUs; otherwise
    /// sleeps.
    SpinAmongFew(u64),
    /// Yields and checks once, then reports with [`Wait::yielded`].
    Yield,
    /// Checks once, then sleeps.
    Check,
    /// Sleeps: the last check was just now.
    Sleep,
}

/// One of the two kinds of attempts to wait without sleeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Yields, for a peer on the same CPU.
    Yields,
    /// Spins, for a peer on another CPU.
    Spins,
}

/// What the wait does until the next report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Yields so that a peer on this CPU runs; so many other threads had turns.
    Yielding(u32),
    /// Yields once before it spins: the thread has had its CPU for long.
    Overdue,
    /// Spins; so many other threads had turns.
    Spinning(u32),
    /// Yields between two spins; so many other threads had turns.
    Between(u32),
    /// Spins beside a foreign thread, where a yield costs a time slice.
    BesideForeign,
    LastCheck,
    Over,
}

/// One wait of a thread.
#[derive(Debug)]
pub(crate) struct Wait {
    started: u64,
    limit: u64,
    /// The kind of attempt that the outcome counts for, if one is made.
    attempt: Option<Attempt>,
    stage: Stage,
}

/// What is known about a waiter when its wait begins.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    pub(crate) now: Moment,
    /// When the waiter last got its CPU (ticks).
    pub(crate) turn_began: u64,
    /// The CPU where the peer ran when it last woke the waiter.
    pub(crate) peer_cpu: u32,
    /// The longest spin, in ticks; 0: none, and no yield.
    pub(crate) limit: u64,
    /// The fork group's turns on the waiter's CPU, if they are recorded.
    pub(crate) turns: Option<&'a CpuTurns>,
}

impl Wait {
    /// Begins a wait. The histories count an attempt that is left out.
    pub(crate) fn begin(waiter: &Waiter, histories: &mut Histories) -> Wait {
        let at = waiter.now.at;
        let is_crowded = || waiter.turns.is_some_and(|turns| turns.has_foreign_load(at));
        let (attempt, stage) = if waiter.limit == 0 || cfg!(feature = "without-spin") {
            (None, Stage::LastCheck)
        } else if waiter.peer_cpu == waiter.now.cpu {
            // The peer cannot answer while we spin, and beside a foreign thread a yield costs a
            // time slice.
            if !is_crowded() && histories.of(Attempt::Yields).is_worthwhile() {
                (Some(Attempt::Yields), Stage::Yielding(0))
            } else {
                (None, Stage::LastCheck)
            }
        } else if !histories.of(Attempt::Spins).is_worthwhile() {
            (None, Stage::LastCheck)
        } else if is_crowded() {
            (Some(Attempt::Spins), Stage::BesideForeign)
        } else if waiter.is_overdue() {
            (Some(Attempt::Spins), Stage::Overdue)
        } else {
            (Some(Attempt::Spins), Stage::Spinning(0))
        };
        Wait {
            started: at,
            limit: waiter.limit,
            attempt,
            stage,
        }
    }

    /// What to do now.
    pub(crate) fn next(&self) -> Action {
        match self.stage {
            Stage::Yielding(_) | Stage::Overdue | Stage::Between(_) => Action::Yield,
            Stage::Spinning(_) => Action::Spin(clock::us(YIELD_EVERY_US)),
            Stage::BesideForeign => Action::SpinAmongFew(self.limit),
            Stage::LastCheck => Action::Check,
            Stage::Over => Action::Sleep,
        }
    }

    /// Reports that a spin ended at `now` without an event.
    pub(crate) fn spun(&mut self, now: u64) {
        let is_short = now.wrapping_sub(self.started) <= self.limit;
        self.stage = match self.stage {
            Stage::Spinning(turns) if is_short => Stage::Between(turns),
            Stage::Spinning(_)
            | Stage::Yielding(_)
            | Stage::Overdue
            | Stage::Between(_)
            | Stage::BesideForeign
            | Stage::LastCheck
            | Stage::Over => Stage::Over,
        };
    }

    /// Reports that a yield, and the check that followed, found no event.
    pub(crate) fn yielded(&mut self, outcome: YieldOutcome) {
        let turns = |before: u32| before + u32::from(outcome != YieldOutcome::Alone);
        self.stage = if outcome == YieldOutcome::Foreign {
            Stage::Over
        } else {
            match self.stage {
                // Any yield counts: a peer on this CPU that wanted to run has run.
                Stage::Yielding(before) if before + 1 < MOST_TURNS => Stage::Yielding(before + 1),
                Stage::Overdue => Stage::Spinning(0),
                Stage::Between(before) if turns(before) < MOST_TURNS => {
                    Stage::Spinning(turns(before))
                }
                Stage::Yielding(_)
                | Stage::Between(_)
                | Stage::Spinning(_)
                | Stage::BesideForeign
                | Stage::LastCheck
                | Stage::Over => Stage::Over,
            }
        };
    }

    /// Ends the wait. `found`: an event came before the thread had to sleep.
    pub(crate) fn end(self, found: bool, histories: &mut Histories) {
        if let Some(attempt) = self.attempt {
            histories.of(attempt).note(found);
        }
    }
}

impl Waiter<'_> {
    /// Whether the thread has had its CPU for long while others of its fork group may want it.
    fn is_overdue(&self) -> bool {
        let turn = self.now.at.wrapping_sub(self.turn_began);
        !cfg!(feature = "without-turns")
            && turn > clock::us(LONG_TURN_US)
            && self.turns.is_some_and(|turns| turns.is_shared(self.now.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u32 = 3;
    const NOW: u64 = 1 << 40;

    fn waiter(peer_cpu: u32, turns: Option<&CpuTurns>) -> Waiter<'_> {
        Waiter {
            now: Moment { at: NOW, cpu: HERE },
            turn_began: NOW,
            peer_cpu,
            limit: clock::us(20),
            turns,
        }
    }

    /// A CPU on which a foreign thread uses up its time slices.
    fn crowded() -> CpuTurns {
        let turns = CpuTurns::default();
        turns.note_lost_time(NOW - clock::us(7_000), NOW);
        assert!(turns.has_foreign_load(NOW));
        turns
    }

    /// The actions of a wait that finds no event, when every spin lasts as long as it was told and
    /// every yield has the same outcome.
    fn actions(waiter: &Waiter<'_>, outcome: YieldOutcome) -> Vec<Action> {
        let mut histories = Histories::NEW;
        let mut wait = Wait::begin(waiter, &mut histories);
        let (mut now, mut all) = (waiter.now.at, Vec::new());
        loop {
            let action = wait.next();
            all.push(action);
            match action {
                Action::Spin(ticks) | Action::SpinAmongFew(ticks) => {
                    now += ticks;
                    wait.spun(now);
                }
                Action::Yield => wait.yielded(outcome),
                Action::Check | Action::Sleep => return all,
            }
            assert!(all.len() < 100, "the wait does not end: {all:?}");
        }
    }

    #[test]
    fn a_peer_on_another_cpu_is_spun_for_until_the_limit() {
        let all = actions(&waiter(HERE + 1, None), YieldOutcome::Alone);
        let spins = all.iter().filter(|one| matches!(one, Action::Spin(_)));
        assert_eq!(
            spins.count(),
            6,
            "4 us each, and the one that passes 20 us: {all:?}"
        );
        assert_eq!(all.last(), Some(&Action::Sleep));
    }

    #[test]
    fn a_spinner_sleeps_after_two_turns_of_other_threads_or_one_foreign_turn() {
        let spin = Action::Spin(clock::us(YIELD_EVERY_US));
        let (brief, foreign) = (YieldOutcome::Brief, YieldOutcome::Foreign);
        let waiter = waiter(HERE + 1, None);
        let two = [spin, Action::Yield, spin, Action::Yield, Action::Sleep];
        assert_eq!(actions(&waiter, brief), two);
        assert_eq!(
            actions(&waiter, foreign),
            [spin, Action::Yield, Action::Sleep]
        );
    }

    #[test]
    fn a_peer_on_the_same_cpu_gets_two_yields() {
        let yields = [Action::Yield, Action::Yield, Action::Sleep];
        assert_eq!(actions(&waiter(HERE, None), YieldOutcome::Brief), yields);
        let foreign = actions(&waiter(HERE, None), YieldOutcome::Foreign);
        assert_eq!(foreign, yields[1..]);
    }

    #[test]
    fn nothing_yields_beside_a_foreign_thread() {
        let turns = crowded();
        let same = actions(&waiter(HERE, Some(&turns)), YieldOutcome::Alone);
        assert_eq!(same, [Action::Check]);
        let other = actions(&waiter(HERE + 1, Some(&turns)), YieldOutcome::Alone);
        assert_eq!(other, [Action::SpinAmongFew(clock::us(20)), Action::Sleep]);
    }

    #[test]
    fn a_long_turn_on_a_shared_cpu_begins_with_a_yield() {
        let turns = CpuTurns::default();
        turns.note_turn(1, NOW - 2);
        turns.note_turn(2, NOW - 1);
        let mut long = waiter(HERE + 1, Some(&turns));
        assert_ne!(actions(&long, YieldOutcome::Alone)[0], Action::Yield);
        long.turn_began = NOW - clock::us(LONG_TURN_US) - 1;
        assert_eq!(actions(&long, YieldOutcome::Alone)[0], Action::Yield);
        long.turns = None;
        assert_ne!(
            actions(&long, YieldOutcome::Alone)[0],
            Action::Yield,
            "no other thread is there"
        );
    }

    #[test]
    fn without_a_limit_or_a_history_of_successes_a_wait_sleeps_at_once() {
        let mut none = waiter(HERE + 1, None);
        none.limit = 0;
        assert_eq!(actions(&none, YieldOutcome::Alone), [Action::Check]);
        let mut histories = Histories::NEW;
        let mut next = |peer_cpu: u32| {
            let wait = Wait::begin(&waiter(peer_cpu, None), &mut histories);
            let action = wait.next();
            wait.end(false, &mut histories);
            action
        };
        let tried: Vec<Action> = (0..200).map(|_| next(HERE + 1)).collect();
        assert_eq!(tried[199], Action::Check, "spins that fail are given up");
        assert_eq!(
            next(HERE),
            Action::Yield,
            "yields have a history of their own"
        );
    }

    /// A counter that jumps, as after a move to a CPU whose counter is not synchronised.
    #[test]
    fn a_clock_that_jumps_ends_the_spin() {
        for jump in [
            NOW - clock::us(1_000_000),
            NOW + clock::us(1_000_000),
            0,
            u64::MAX,
        ] {
            let mut histories = Histories::NEW;
            let mut wait = Wait::begin(&waiter(HERE + 1, None), &mut histories);
            wait.spun(jump);
            assert_eq!(wait.next(), Action::Sleep, "{jump}");
        }
    }

    #[test]
    fn the_outcome_of_a_yield_follows_from_its_length_and_from_who_had_turns() {
        let of = |us: u64, explained: bool| YieldOutcome::of(clock::us(us), || explained);
        assert_eq!(of(1, false), YieldOutcome::Alone);
        assert_eq!(of(100, false), YieldOutcome::Brief);
        assert_eq!(of(3_000, true), YieldOutcome::Brief);
        assert_eq!(of(3_000, false), YieldOutcome::Foreign);
    }
}
