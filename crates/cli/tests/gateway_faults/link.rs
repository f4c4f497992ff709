//! A link that loses, doubles, reorders and corrupts packets of TCP, from a seed: a thread that
//! moves frames between two TAP devices.
//!
//! A corrupted packet has one flipped bit behind the Ethernet header, which a checksum of IP or TCP
//! finds. Other frames pass unchanged: ARP has no checksum, and relies on that of Ethernet, which
//! these devices do not have.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use saiga_netdev::Device as _;
use saiga_netdev::tap::Tap;
use saiga_wire::virtio::Header;

/// One of so many packets is lost, doubled, delayed or corrupted.
const LOST: u32 = 100;
const DOUBLED: u32 = 200;
const LATE: u32 = 50;
const CORRUPTED: u32 = 100;
/// Later packets that overtake a delayed one.
const OVERTAKING: u32 = 3;
/// How long a delayed packet waits for them, in nanoseconds.
const LATE_NS: i64 = 2_000_000;
/// Frames that are taken at a time.
const BATCH: usize = 64;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// The link; it ends with the value.
pub(crate) struct Faulty {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    lost: AtomicU64,
    doubled: AtomicU64,
    late: AtomicU64,
    corrupted: AtomicU64,
}

impl Faulty {
    /// Connects the devices.
    pub(crate) fn start(mut near: Tap, mut far: Tap, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut seeds = Rng::with_seed(seed);
            let mut inward = Direction::new(seeds.fork());
            let mut outward = Direction::new(seeds.fork());
            while !theirs.over.load(Ordering::Relaxed) {
                let came = inward.pass(&mut far, &mut near, &theirs);
                let went = outward.pass(&mut near, &mut far, &theirs);
                if !came && !went {
                    wait(&near, &far);
                    inward.release(&mut near);
                    outward.release(&mut far);
                }
            }
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Lost, doubled, late and corrupted packets so far.
    pub(crate) fn faults(&self) -> [u64; 4] {
        let Shared {
            over: _,
            lost,
            doubled,
            late,
            corrupted,
        } = &*self.shared;
        [lost, doubled, late, corrupted].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// One direction of the link.
struct Direction {
    rng: Rng,
    /// Delayed frames, with the number of those that have still to overtake.
    late: VecDeque<(Vec<u8>, u32)>,
}

impl Direction {
    fn new(rng: Rng) -> Self {
        Self {
            rng,
            late: VecDeque::new(),
        }
    }

    /// Moves the waiting frames; returns whether there were any.
    fn pass(&mut self, from: &mut Tap, to: &mut Tap, shared: &Shared) -> bool {
        let received = from.receive(BATCH, &mut |frame| {
            if is_tcp(frame.bytes) {
                self.strike(frame.bytes, to, shared);
            } else {
                send(to, frame.bytes);
            }
        });
        to.flush().unwrap();
        received.unwrap() > 0
    }

    /// Sends a packet with or without a fault.
    fn strike(&mut self, frame: &[u8], to: &mut Tap, shared: &Shared) {
        if self.happens(LOST) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        } else if self.happens(LATE) {
            shared.late.fetch_add(1, Ordering::Relaxed);
            self.late.push_back((frame.to_vec(), OVERTAKING));
            return;
        } else if self.happens(CORRUPTED) {
            shared.corrupted.fetch_add(1, Ordering::Relaxed);
            let mut bytes = frame.to_vec();
            let place = self.rng.usize(ETHERNET..bytes.len());
            bytes[place] ^= 1 << self.rng.u8(..8);
            send(to, &bytes);
        } else {
            send(to, frame);
            if self.happens(DOUBLED) {
                shared.doubled.fetch_add(1, Ordering::Relaxed);
                send(to, frame);
            }
        }
        for (_, overtaking) in &mut self.late {
            *overtaking = overtaking.saturating_sub(1);
        }
        while self
            .late
            .front()
            .is_some_and(|(_, overtaking)| *overtaking == 0)
            && let Some((frame, _)) = self.late.pop_front()
        {
            send(to, &frame);
        }
    }

    /// Sends the delayed packets: none has overtaken them for a while.
    fn release(&mut self, to: &mut Tap) {
        for (frame, _) in self.late.drain(..) {
            send(to, &frame);
        }
        to.flush().unwrap();
    }

    fn happens(&mut self, one_of: u32) -> bool {
        self.rng.u32(..one_of) == 0
    }
}

/// Waits a moment for frames.
fn wait(near: &Tap, far: &Tap) {
    let (near, far) = (near.descriptor(), far.descriptor());
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: LATE_NS,
    };
    let mut both = [
        PollFd::new(&near, PollFlags::IN),
        PollFd::new(&far, PollFlags::IN),
    ];
    // An interrupted wait is a short one.
    let _ready = poll(&mut both, Some(&limit));
}

/// Whether a frame has a packet of TCP, without extension headers.
fn is_tcp(frame: &[u8]) -> bool {
    let protocol = match frame.get(12..ETHERNET) {
        Some([0x08, 0x00]) => frame.get(23),
        Some([0x86, 0xdd]) => frame.get(20),
        _ => None,
    };
    protocol == Some(&6)
}

/// Puts a frame on a device; it leaves with the next flush. Full queues lose it, as switches do.
pub(crate) fn send(device: &mut Tap, frame: &[u8]) {
    let Some(room) = device.room() else {
        return;
    };
    room[..frame.len()].copy_from_slice(frame);
    device.send(frame.len(), &Header::NONE);
}
