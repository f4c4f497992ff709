//! The wait policy: spin, yield, or sleep at once.
//!
//! The time of the answer is not known, so the rules use what a waiter can observe
//! (docs/waiting.md): where the peer ran, the cost of a wake-up, how long a yield took (at once: no
//! other thread wants this CPU; soon: a thread of our own kind ran; late: a foreign thread ran),
//! and whether such waits were recently worthwhile.

use crate::company::{self, Presence, Turn};
use crate::luck::{self, Luck};
use crate::{clock, family, rt, wakeups};
use saiga_channel::segment::Segment;

/// Spinning for less than this never pays for a sleep.
const LEAST_SPIN_US: u64 = 10;
/// Interval of a spinner's yields.
const COURTESY_US: u64 = 4;
/// Turns that other threads may take before the waiter sleeps.
const TURNS: u32 = 2;

/// Waits a short while for `news` without sleeping. `peer_cpu` is the CPU where the peer ran when
/// it last woke us; `segment` is shared with the peer. True when there is an event.
pub(crate) fn linger(peer_cpu: u32, segment: Option<&Segment>, news: impl Fn() -> bool) -> bool {
    let start = Presence::now();
    if let Some(segment) = segment {
        segment.note_turn(start.at);
    }
    let found = attempt(start, peer_cpu, &news);
    luck::count(found);
    found
}

fn attempt(start: Presence, peer_cpu: u32, news: &impl Fn() -> bool) -> bool {
    let limit = spin_limit();
    if limit == 0 || cfg!(feature = "without-spin") {
        return news();
    }
    if peer_cpu == start.cpu {
        // The peer cannot answer while we spin, and beside a foreign thread a yield costs a time
        // slice.
        if family::has_strangers(start.cpu, start.at) {
            return news();
        }
        return luck::try_if_worth(Luck::Yield, || yield_turns(news)).unwrap_or_else(news);
    }
    let spun = luck::try_if_worth(Luck::Spin, || {
        if family::has_strangers(start.cpu, start.at) {
            // A yield would cost a time slice here.
            company::Spinner::enter().is_some_and(|_one| spin(limit, news))
        } else {
            polite_spin(start, limit, news)
        }
    });
    spun.unwrap_or_else(news)
}

/// About the cost of a wake-up: then waiting costs at most twice what it would with foresight.
fn spin_limit() -> u64 {
    let most = clock::us(rt::spin_us());
    let least = clock::us(LEAST_SPIN_US).min(most);
    wakeups::cost().map_or(most, |cost| cost.clamp(least, most))
}

/// Gives a peer on the same CPU the chance to answer.
fn yield_turns(news: &impl Fn() -> bool) -> bool {
    for _ in 0..TURNS {
        let turn = company::offer_cpu();
        if news() {
            return true;
        }
        if turn == Turn::Stranger {
            return false;
        }
    }
    false
}

/// Spins while no other thread wants the CPU. Yields every few microseconds, and gives up after a
/// few turns of other threads.
fn polite_spin(start: Presence, limit: u64, news: &impl Fn() -> bool) -> bool {
    if start.is_overdue() && company::offer_cpu() == Turn::Stranger {
        return news();
    }
    let mut turns = 0;
    loop {
        if spin(clock::us(COURTESY_US), news) {
            return true;
        }
        let now = clock::ticks();
        if now.wrapping_sub(start.at) > limit {
            return false;
        }
        match company::offer_cpu() {
            Turn::Nobody => {}
            Turn::Friend if turns + 1 < TURNS => turns += 1,
            Turn::Friend | Turn::Stranger => return news(),
        }
    }
}

fn spin(limit: u64, news: &impl Fn() -> bool) -> bool {
    let start = Presence::now().at;
    loop {
        let found = (0..8).any(|_| {
            core::hint::spin_loop();
            news()
        });
        if found || clock::ticks().wrapping_sub(start) > limit {
            return found;
        }
    }
}
