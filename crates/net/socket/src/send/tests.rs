//! Recalled bytes sent again by TCP, against a peer that rewrites shared memory at the same time.

use super::*;
use crate::links::{self, Known};
use crate::sock::Origin;
use crate::state::ModeEvent;
use crate::{rt, table};
use saiga_channel::direction::RxEvent;
use saiga_channel::layout::{Header, Slot, SlotIndex};
use saiga_channel::rendezvous::Credentials;
use saiga_channel::segment::Segment;
use std::fs::File;
use std::mem::offset_of;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicBool;

/// Sets its flag when dropped, which ends the other thread also if the test fails.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A socket whose channel the peer has recalled with a few bytes in it.
fn recalled() -> (&'static Socket, Chan) {
    assert!(table::init());
    let socket = Socket::open(90, Origin::Accepted).expect("a record");
    let segment = Segment::create(rt::floor()).expect("memory");
    segment.populate_start(SlotIndex::FIRST).expect("memory");
    segment.open_slot(SlotIndex::FIRST).expect("memory");
    let own = segment.own_slot(SlotIndex::FIRST);
    own.begin();
    own.rx_mode.transition(RxEvent::Switch);
    own.tx_mode.transition(TxEvent::Switch);
    segment.slot(SlotIndex::FIRST).rings[0].reset(saiga_channel::layout::START_SHIFT);
    let Known::Ours(link) = links::adopt(segment, Credentials { pid: 1, uid: 0 }) else {
        panic!("it is new")
    };
    let address = core::ptr::from_ref(link).cast_mut();
    socket.link.store(address, Ordering::Release);
    assert!(socket.mode.transition(ModeEvent::Bind).is_some());
    let chan = Chan::of(socket).expect("it has a link");
    let put = chan.put(socket, b"unread"[..].into());
    assert!(matches!(put, Put::Bytes { n: 6, .. }));
    chan.tx_ring().recall();
    (socket, chan)
}

/// Whether a call that sends recalled bytes ends in a reset while the peer changes the ring again
/// and again. The anchor accepts all bytes: they are datagrams that nothing reads. The peer may be
/// too slow at times, so there are several attempts.
fn ends_in_a_reset(again: impl Fn(&Chan, &File) + Sync) -> bool {
    let [sink, anchor] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let address = sink.local_addr().expect("it is bound");
    anchor.connect(address).expect("it exists");
    let attempt = |_| {
        let (socket, chan) = recalled();
        let memory = format!("/proc/self/fd/{}", chan.segment.fd());
        let memory = File::options().write(true).open(memory).expect("our own");
        again(&chan, &memory);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _until = Until(&over);
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    again(&chan, &memory);
                }
            });
            give_back(anchor.as_raw_fd(), socket, &chan).is_err()
        })
    };
    (0..50).any(attempt)
}

/// Makes the ring look as large as possible, and full.
fn refill(chan: &Chan, memory: &File) {
    let words = offset_of!(Header, slots) + offset_of!(Slot, rings); // The ring's first two.
    let head = (1 << 63) | (chan.tx_ring().tail() + (1 << STRIDE_SHIFT));
    let geometry = u64::from(STRIDE_SHIFT) << 56;
    let both = [head.to_le_bytes(), geometry.to_le_bytes()].concat();
    memory
        .write_all_at(&both, words as u64)
        .expect("it is ours");
}

#[test]
fn a_recall_of_bytes_without_end_is_ended_by_a_reset() {
    assert!(ends_in_a_reset(refill));
}

#[test]
fn a_peer_that_moves_its_cursor_back_is_reset() {
    assert!(ends_in_a_reset(|chan, memory| {
        let tail = chan.tx_ring().tail();
        chan.tx_ring().skip(tail, tail.wrapping_neg());
        if tail == 0 {
            refill(chan, memory);
        }
    }));
}
