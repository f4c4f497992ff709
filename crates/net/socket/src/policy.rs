//! How a waiting side waits: spin, yield, or sleep at once.
//!
//! Nobody can know when the answer comes, so the rules follow what a waiter can
//! notice (docs/waiting.md): where the peer ran, what a wake-up costs here, whether
//! a yield comes back at once (nobody else wants this CPU), soon (our own kind had
//! a turn) or late (a stranger), and whether such waits were worth it of late.

use crate::company::{self, Presence, Turn};
use crate::luck::{self, Luck};
use crate::{clock, family, rt, wakeups};
use saiga_channel::segment::Segment;

/// Spinning for less than this never pays for a sleep.
const LEAST_SPIN_US: u64 = 10;
/// A spinner offers its CPU to others this often.
const COURTESY_US: u64 = 4;
/// Turns that others may take before the waiter leaves the CPU to them and sleeps.
const TURNS: u32 = 2;

/// Waits a short while without sleeping, for `news`. `peer_cpu` is where the peer ran when it
/// last told us something; `segment` is shared with it. True when there is news.
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
        // It cannot answer while we spin, and beside a stranger a yield costs a time slice.
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

/// About what a wake-up costs: then waiting costs at most twice what it would with foresight.
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

/// Spins while nobody else wants the CPU: others get it every few microseconds, and after a
/// few turns of theirs it is theirs altogether.
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
