//! The channel of a bound socket: its slot seen from our side, its locks, and how the peer's
//! threads are woken.

#![expect(unsafe_code, reason = "turns the socket's link word into a reference")]

use crate::gather::Gather;
use crate::links::Link;
use crate::sock::Socket;
use crate::{allowance, chaos, clock, rt, tcp_use, thread};
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use saiga_channel::direction::{RxEvent, TxEvent, TxMode};
use saiga_channel::layout::{OPEN_CLOSED, OPEN_MAPPED, Side, SideBlock, Slot, SlotIndex};
use saiga_channel::lock_word::LockWord;
use saiga_channel::own::OwnSlot;
use saiga_channel::ring::{Put, Ring};
use saiga_channel::segment::{RingBytes, Segment};
use saiga_channel::sys;
use saiga_status::Reason;

/// A bound socket's channel from our side.
#[derive(Clone, Copy)]
pub(crate) struct Chan {
    pub(crate) link: &'static Link,
    pub(crate) segment: &'static Segment,
    pub(crate) index: SlotIndex,
    slot: &'static Slot,
    /// Unread bytes at which our ring counts as full.
    most_unread: u64,
}

impl Chan {
    /// The channel of a bound and pinned socket.
    pub(crate) fn of(socket: &Socket) -> Option<Chan> {
        // SAFETY: a bound socket is a user of its link, which is a pool record.
        let link: &'static Link = unsafe { socket.link.load(Ordering::Acquire).as_ref() }?;
        let chan = Chan::at(link, SlotIndex::stored(socket.slot.load(Ordering::Relaxed)))?;
        let most_unread = match socket.most_unread.load(Ordering::Relaxed) {
            0 => u64::MAX,
            most => most,
        };
        Some(Chan {
            most_unread,
            ..chan
        })
    }

    /// Slot `index` of a link that the caller uses.
    pub(crate) fn at(link: &'static Link, index: SlotIndex) -> Option<Chan> {
        let segment = link.segment()?;
        Some(Chan {
            link,
            segment,
            index,
            slot: segment.slot(index),
            most_unread: u64::MAX,
        })
    }

    /// The slot with the words of both sides.
    pub(crate) fn slot(&self) -> &'static Slot {
        self.slot
    }

    /// The ring that this side reads.
    pub(crate) fn rx_ring(&self) -> &'static Ring {
        &self.slot.rings[self.segment.side.peer().0]
    }

    /// The ring that this side writes.
    pub(crate) fn tx_ring(&self) -> &'static Ring {
        &self.slot.rings[self.segment.side.0]
    }

    /// The memory of the ring that this side reads.
    pub(crate) fn rx_bytes(&self) -> RingBytes<'static> {
        let all = saiga_channel::layout::STRIDE_SHIFT;
        self.segment
            .bytes(self.index, self.segment.side.peer().0, all)
    }

    /// The memory of the ring that this side writes, up to the allowed capacity.
    pub(crate) fn tx_bytes(&self) -> RingBytes<'static> {
        self.segment
            .bytes(self.index, self.segment.side.0, allowance::limit())
    }

    /// The memory of the same ring at any capacity: for reading our own ring back.
    pub(crate) fn tx_bytes_all(&self) -> RingBytes<'static> {
        let all = saiga_channel::layout::STRIDE_SHIFT;
        self.segment.bytes(self.index, self.segment.side.0, all)
    }

    /// The words that this side publishes.
    pub(crate) fn ours(&self) -> &'static SideBlock {
        &self.slot.sides[self.segment.side.0]
    }

    /// The words that this side keeps private, out of the peer's reach.
    pub(crate) fn own(&self) -> &'static OwnSlot {
        self.segment.own_slot(self.index)
    }

    /// Publishes that our end uses the channel from now on.
    pub(crate) fn publish_open(&self) {
        self.own().note_open();
        self.ours().open.store(OPEN_MAPPED, Ordering::SeqCst);
    }

    /// Publishes that our end never touches the channel again. From then on the slot may be given
    /// to another connection.
    pub(crate) fn leave(&self) {
        self.own().note_closed();
        self.own().unclaim();
        self.ours().open.store(OPEN_CLOSED, Ordering::SeqCst);
    }

    /// Makes TCP carry what we send from now on, behind the end of our ring.
    pub(crate) fn go_by_tcp(&self) {
        self.own().tx_mode.transition(TxEvent::GoByTcp);
        self.ours().sends_tcp.store(1, Ordering::SeqCst);
    }

    /// Undoes [`go_by_tcp`](Self::go_by_tcp): bytes that the peer has recalled must go first.
    pub(crate) fn wait_for_recall(&self) {
        self.ours().sends_tcp.store(0, Ordering::SeqCst);
        self.own().tx_mode.transition(TxEvent::Recall);
    }

    /// Whether the peer has published that it sends by TCP again.
    pub(crate) fn peer_sends_tcp(&self) -> bool {
        self.theirs().sends_tcp.load(Ordering::SeqCst) != 0
    }

    /// The words that the peer publishes.
    pub(crate) fn theirs(&self) -> &'static SideBlock {
        &self.slot.sides[self.segment.side.peer().0]
    }

    /// Whether the ring that this side writes takes bytes now, or has ended.
    pub(crate) fn writable(&self) -> bool {
        self.tx_ring().writable(allowance::limit()) && self.is_below_mark()
    }

    /// Asks the peer to wake us when the ring takes bytes; true if it does already.
    pub(crate) fn arm_space(&self) -> bool {
        self.tx_ring().arm_space(allowance::limit()) && self.is_below_mark()
    }

    /// Bytes that writes would take now.
    pub(crate) fn room(&self) -> usize {
        let room = self.tx_ring().room(allowance::limit());
        if self.is_below_mark() { room } else { 0 }
    }

    /// Whether the unread bytes are below the mark that the application has set; true for a ring
    /// that has ended.
    fn is_below_mark(&self) -> bool {
        let below = |unread| unread < self.most_unread;
        let unread = || self.tx_ring().pending(saiga_channel::layout::STRIDE_SHIFT);
        self.most_unread == u64::MAX || unread().is_none_or(below) || self.tx_ring().frozen()
    }

    /// Writes to the ring and wakes the peer. The caller holds the sender's lock.
    pub(crate) fn put(&self, socket: &Socket, what: Gather<'_>) -> Put {
        if !self.is_below_mark() {
            return Put::Full;
        }
        let bytes = self.tx_bytes();
        let put = self.tx_ring().write(&bytes, what.parts(), |shift| {
            let permitted = !chaos::starves() && allowance::permits(socket, shift);
            let grown = permitted && bytes.populate(shift);
            if grown {
                allowance::lend(socket, shift);
            }
            grown
        });
        if let Put::Bytes { notify, .. } = put {
            self.publish_cpu();
            if notify {
                self.wake_reader();
                self.end_if_excessive(socket);
            }
        }
        put
    }

    /// CPU on which the peer last sent something (`u32::MAX`: unknown).
    pub(crate) fn peer_cpu(&self) -> u32 {
        self.theirs().cpu.load(Ordering::Relaxed)
    }

    /// Publishes the CPU that we run on, for the peer's wait policy.
    pub(crate) fn publish_cpu(&self) {
        let (word, cpu) = (&self.ours().cpu, thread::cpu());
        if word.load(Ordering::Relaxed) != cpu {
            word.store(cpu, Ordering::Relaxed);
        }
    }

    /// Wakes the peer's threads that wait for bytes.
    pub(crate) fn wake_reader(&self) {
        self.wake_peer(self.theirs().rx_wait_slots.bits());
    }

    /// Wakes the peer's threads that wait for space.
    pub(crate) fn wake_writer(&self) {
        self.wake_peer(self.theirs().tx_wait_slots.bits());
    }

    /// Wakes our own threads that wait on the channel, after a change on our side.
    pub(crate) fn wake_own_threads(&self) {
        let ours = self.ours();
        let wait_slots = ours.rx_wait_slots.bits() | ours.tx_wait_slots.bits();
        self.wake_at(self.segment.side, wait_slots, clock::ticks());
    }

    /// Wakes our own threads that are blocked in a receive or a send of the channel. Polls and
    /// epoll sets sleep on: their slots are in both words, a receive's or send's is in one.
    pub(crate) fn wake_own_callers(&self) {
        let ours = self.ours();
        let wait_slots = ours.rx_wait_slots.bits() ^ ours.tx_wait_slots.bits();
        self.wake_at(self.segment.side, wait_slots, clock::ticks());
    }

    fn wake_peer(&self, wait_slots: u64) {
        if wait_slots == 0 {
            return;
        }
        let now = clock::ticks();
        self.segment.note_by_tcp(tcp_use::last());
        self.segment.note_wakeup(self.index, now);
        self.wake_at(self.segment.side.peer(), wait_slots, now);
    }

    /// Ends both rings if the peer has repeatedly made us wake many of its wait slots at once: each
    /// costs us a system call and the peer none. An honest peer waits in few slots.
    pub(crate) fn end_if_excessive(&self, socket: &Socket) {
        if self.own().extra_wakeups.load(Ordering::Relaxed) > EXTRA_WAKEUPS {
            socket.note_end(Reason::PeerExcess);
            self.freeze_tx();
            self.freeze_rx();
        }
    }

    fn wake_at(&self, side: Side, mut wait_slots: u64, now: u64) {
        let mut rings = 0u32;
        while wait_slots != 0 {
            let index = wait_slots.trailing_zeros() as usize;
            wait_slots &= wait_slots - 1;
            let wait_slot = self.segment.wait_slot(side, index);
            if let Some(bell) = wait_slot.notify(self.index.get()) {
                wait_slot.note_ring(now, thread::cpu());
                rt::ring(bell);
                rings += 1;
            }
        }
        if rings > FREE_WAKEUPS {
            let extra = rings - FREE_WAKEUPS;
            self.own().extra_wakeups.fetch_add(extra, Ordering::Relaxed);
        }
    }

    /// Ends the ring that we write, and wakes the peer.
    pub(crate) fn freeze_tx(&self) {
        self.end_tx();
        self.tx_ring().take_armed();
        self.wake_reader();
    }

    /// Ends the ring that we write, without waking the peer: the kernel is about to send our FIN.
    pub(crate) fn end_tx(&self) {
        self.tx_ring().freeze();
        let before = self.own().tx_mode.transition(TxEvent::End);
        if before == Some(TxMode::Tcp) {
            self.ours().sends_tcp.store(1, Ordering::SeqCst);
        }
    }

    /// Ends the ring that we read. The peer goes back to TCP with its next byte.
    pub(crate) fn freeze_rx(&self) {
        self.rx_ring().freeze();
        self.rx_ring().take_want_space();
        self.wake_writer();
    }

    /// Ends the ring that we read even if it holds bytes: the peer sends them again by TCP. The
    /// caller holds the receiver's lock.
    pub(crate) fn recall_rx(&self) {
        self.rx_ring().recall();
        self.rx_ring().take_want_space();
        self.own().rx_mode.transition(RxEvent::End);
        self.wake_reader();
        self.wake_writer();
    }

    /// Whether unread bytes of ours must go by TCP; cheap while the ring has not ended. Never true
    /// once TCP has gone on: the bytes would come behind bytes that were written later.
    pub(crate) fn recall_due(&self) -> bool {
        let ring = self.tx_ring();
        ring.frozen() && self.own().tx_mode.get() != TxMode::After && self.recalled()
    }

    /// Whether the peer has recalled the ring with unread bytes of ours in it.
    pub(crate) fn recalled(&self) -> bool {
        let ring = self.tx_ring();
        ring.recalled()
            && ring
                .pending(saiga_channel::layout::STRIDE_SHIFT)
                .is_some_and(|n| n > 0)
    }

    /// Whether a thread of the peer is inside a receive. A thread that is not will see, at its next
    /// receive, everything that we published before a barrier on all threads.
    pub(crate) fn peer_receives(&self) -> bool {
        self.theirs().receiving.load(Ordering::SeqCst) != 0
    }

    /// Takes the sender's lock of our side. `None` if its holder keeps it: reset the connection.
    pub(crate) fn lock_tx(&self, socket: &Socket) -> Option<SideLock> {
        SideLock::take(&self.own().tx_lock, None, socket)
    }

    /// Takes the receiver's lock of our side, and publishes that it is held. `None` if its holder
    /// keeps it: reset the connection.
    pub(crate) fn lock_rx(&self, socket: &Socket) -> Option<SideLock> {
        let shown = &self.ours().receiving;
        SideLock::take(&self.own().rx_lock, Some(shown), socket)
    }
}

/// Wait slots that one message may wake without being counted.
const FREE_WAKEUPS: u32 = 4;
/// Limit of wait slots woken beyond those, over the life of a channel.
const EXTRA_WAKEUPS: u32 = 4096;

/// A holder copies at most a ring's bytes. A holder that takes this long is stopped, or is dead and
/// its thread id belongs to another thread.
const HOLD_LIMIT_NS: u64 = 5_000_000_000;

/// Holds one of the locks of our side, which threads and forked processes share.
pub(crate) struct SideLock {
    word: &'static LockWord,
    /// Set to 1 while the lock is held, for the peer.
    shown: Option<&'static AtomicU32>,
    /// This thread held the lock already: this is a signal handler above its own operation.
    pub(crate) nested: bool,
}

impl SideLock {
    fn take(
        word: &'static LockWord,
        shown: Option<&'static AtomicU32>,
        socket: &Socket,
    ) -> Option<SideLock> {
        let me = u64::from(thread::id());
        let now = word.holder();
        if now == me {
            let nested = true;
            return Some(SideLock {
                word,
                shown,
                nested,
            });
        }
        if now == 0 && thread::alone() && !socket.maybe_shared() {
            word.take_alone(me);
        } else {
            Self::contend(word, me)?;
        }
        if let Some(shown) = shown {
            shown.store(1, Ordering::Relaxed);
            // For a peer that makes us pass a barrier and then checks for threads inside.
            compiler_fence(Ordering::SeqCst);
        }
        let nested = false;
        Some(SideLock {
            word,
            shown,
            nested,
        })
    }

    /// Competes with other threads and processes for the lock; `None` when one of them keeps it.
    fn contend(word: &LockWord, me: u64) -> Option<()> {
        let since = clock::monotonic_ns();
        let mut tries = 0u32;
        while !word.take(0, me) {
            tries += 1;
            if tries.is_multiple_of(4096) {
                Self::steal_from_dead(word, me);
                if clock::monotonic_ns() - since > HOLD_LIMIT_NS {
                    return None;
                }
            }
            if tries.is_multiple_of(64) {
                sys::yield_cpu();
            } else {
                core::hint::spin_loop();
            }
        }
        Some(())
    }

    /// Frees the lock of a thread that was killed while it held it.
    fn steal_from_dead(word: &LockWord, me: u64) {
        let holder = word.holder();
        let is_dead = || u32::try_from(holder).is_ok_and(|thread| !sys::alive(thread));
        if holder != 0 && holder != me && is_dead() {
            word.free_for(holder);
        }
    }
}

impl Drop for SideLock {
    fn drop(&mut self) {
        if !self.nested {
            if let Some(shown) = self.shown {
                shown.store(0, Ordering::Release);
            }
            self.word.free();
        }
    }
}
