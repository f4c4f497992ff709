//! The wait slots of a sleeping poll: one in each segment of its channels.
//!
//! The caller is inside every bound socket during the sleep, as the kernel's poll holds a reference
//! to every file: the segments stay mapped, and a close of a descriptor ends nothing yet.

#![expect(
    unsafe_code,
    reason = "claims in memory that an abandoned frame had borrowed"
)]

use super::bound;
use crate::asleep::{Asleep, Held};
use crate::chan::Chan;
use crate::lock;
use crate::policy::wake_cost::Waking;
use crate::readiness;
use crate::sock::{Pin, Socket};
use crate::thread_bells::Borrowed;
use core::sync::atomic::{AtomicU64, Ordering};
use libc::pollfd;
use saiga_channel::layout::WAIT_SLOTS;
use saiga_channel::segment::Segment;

/// The wait slot of one descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// The bound socket, on which the call holds a pin.
    socket: Option<&'static Socket>,
    /// Index of the wait slot in the socket's segment.
    wait_slot: usize,
    /// Whether the slot was claimed for this descriptor; later ones of the segment share it.
    first: bool,
}

impl Claim {
    pub(super) const NONE: Claim = Claim {
        socket: None,
        wait_slot: 0,
        first: false,
    };

    fn chan(&self) -> Option<Chan> {
        Chan::of(self.socket?)
    }

    /// The segment and its wait slot, for the descriptor that claimed the slot.
    fn segment(&self) -> Option<(&'static Segment, usize)> {
        let segment = self.chan().filter(|_| self.first)?.segment;
        Some((segment, self.wait_slot))
    }
}

/// The wait slots of one call; released when dropped.
pub(super) struct WaitSlots<'a> {
    all: &'a mut [Claim],
    /// Whether every channel has a wait slot.
    pub(super) complete: bool,
    /// Fork epoch of the call.
    epoch: u32,
}

impl<'a> WaitSlots<'a> {
    /// Claims wait slots for the bound ones of `fds`; `all` has an entry for each descriptor.
    pub(super) fn new(all: &'a mut [Claim], fds: &[pollfd], bell: &Borrowed) -> WaitSlots<'a> {
        let call = next_call();
        let mut complete = true;
        for (claim, p) in all.iter_mut().zip(fds) {
            *claim = Claim::NONE;
            let Some((pin, socket, chan)) = bound(p.fd) else {
                continue;
            };
            let Some((wait_slot, first)) = wait_slot_in(&chan, bell, call) else {
                complete = false;
                continue;
            };
            chan.ours().rx_wait_slots.enter(wait_slot);
            chan.ours().tx_wait_slots.enter(wait_slot);
            readiness::arm(&chan, p.events);
            *claim = Claim {
                socket: Some(socket),
                wait_slot,
                first,
            };
            core::mem::forget(pin); // Dropped when the claim is released.
        }
        let epoch = lock::epoch();
        WaitSlots {
            all,
            complete,
            epoch,
        }
    }

    /// Notes the claims before the caller sleeps. With `mapped`, the claims are in noted memory, so
    /// one note refers to all of them.
    pub(super) fn note(&self, asleep: &Asleep, mapped: bool) {
        if mapped {
            return asleep.hold(Held::Claims(self.all.as_ptr(), self.all.len()));
        }
        // Released in reverse order: a socket that shares a slot goes before the claiming one.
        for claim in self.all.iter() {
            match claim.socket {
                Some(socket) if claim.first => {
                    asleep.hold(Held::FirstClaim(socket, claim.wait_slot));
                }
                Some(socket) => asleep.hold(Held::Claim(socket, claim.wait_slot)),
                None => {}
            }
        }
    }

    /// Whether the wait slots are the caller's. In a child that a signal handler has forked above
    /// the call they are the parent's.
    pub(super) fn are_ours(&self) -> bool {
        self.epoch == lock::epoch()
    }

    /// Forgets claims that were released as abandoned.
    pub(super) fn disown(self) {
        core::mem::forget(self);
    }

    /// Publishes in every segment that the caller sleeps; true when there is an event already.
    pub(super) fn announce_sleep(&self) -> bool {
        let wait_slots = self.all.iter().filter_map(Claim::segment);
        wait_slots.fold(false, |has_event, (segment, index)| {
            segment.wait_slot(segment.side, index).sleep() || has_event
        })
    }
}

impl Drop for WaitSlots<'_> {
    fn drop(&mut self) {
        if self.are_ours() {
            give_back(self.all);
        } else {
            leave(self.all);
        }
    }
}

fn give_back(all: &mut [Claim]) {
    // Clear all bits first: a released slot may be another thread's at once.
    for claim in all.iter() {
        let Some(chan) = claim.chan() else { continue };
        chan.ours().rx_wait_slots.leave(claim.wait_slot);
        chan.ours().tx_wait_slots.leave(claim.wait_slot);
    }
    let waking = Waking::now();
    for (segment, index) in all.iter().filter_map(Claim::segment) {
        waking.end_sleep(segment.wait_slot(segment.side, index));
        segment.release_wait_slot(index);
    }
    leave(all);
}

/// Drops the pins; the wait slots stay claimed.
fn leave(all: &mut [Claim]) {
    for claim in all {
        if let Some(socket) = claim.socket.take() {
            drop(Pin(socket));
        }
    }
}

/// Releases a claim of an abandoned frame; the claim that owns the wait slot comes last.
pub(crate) fn give_back_one(socket: &'static Socket, wait_slot: usize, first: bool) {
    give_back(&mut [Claim {
        socket: Some(socket),
        wait_slot,
        first,
    }]);
}

/// Releases the claims of an abandoned frame, which are in memory that the frame had borrowed.
pub(crate) fn give_back_many(at: *const Claim, n: usize) {
    // SAFETY: `note` has stored a slice in memory that stays mapped, and is ours until it is
    // given back itself.
    give_back(unsafe { core::slice::from_raw_parts_mut(at.cast_mut(), n) });
}

/// Drops the pins of such claims; the wait slots are the parent process's.
pub(crate) fn leave_many(at: *const Claim, n: usize) {
    // SAFETY: as in `give_back_many`.
    leave(unsafe { core::slice::from_raw_parts_mut(at.cast_mut(), n) });
}

/// The sockets in such claims.
pub(crate) fn sockets_of(at: *const Claim, n: usize) -> impl Iterator<Item = &'static Socket> {
    (0..n).filter_map(move |i| {
        // SAFETY: as in `give_back_many`.
        let claim = unsafe { at.add(i) };
        // SAFETY: as above.
        unsafe { (*claim).socket }
    })
}

/// A number that identifies a call among all calls of the process, so that a link can record the
/// call that last claimed a wait slot in it, and the slot.
fn next_call() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    (CALLS.fetch_add(1, Ordering::Relaxed) + 1) * WAIT_SLOTS as u64
}

/// The call's wait slot in a channel's segment, and whether this function has claimed it.
fn wait_slot_in(chan: &Chan, bell: &Borrowed, call: u64) -> Option<(usize, bool)> {
    let mark = chan.link.polled_by(call);
    if let Some(wait_slot) = mark {
        return Some((wait_slot, false));
    }
    let wait_slot = chan.segment.claim_wait_slot(bell.bell().name)?;
    // Another thread may overwrite our mark; then this call claims a second slot.
    chan.link.note_polled(call, wait_slot);
    Some((wait_slot, true))
}
