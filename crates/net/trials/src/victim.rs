//! The server under attack, from the view of a hostile client of the same user: a connection with
//! the mark of Saiga's processes, and the steps of the rendezvous, performed one by one.
//!
//! The client itself runs without the library and uses the channel crate's own types.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::TcpStream,
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::fs::FileExt as _,
    },
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use saiga_channel::{
    diag,
    layout::{HEADER_BYTES, START_SHIFT, STRIDE_SHIFT, SlotIndex},
    rendezvous::{self, Proposal, Refusal},
    ring::Ring,
    segment::Segment,
    sys as kernel,
    tuple::Tuple,
};

use crate::{scale::Rng, sys};

/// Lowest number for descriptors that the channel crate opens.
pub const FLOOR: usize = 3;
/// The proposed ring capacity, as a binary logarithm.
pub const LARGEST_SHIFT: u32 = 20;

/// The connection to the server under attack.
#[derive(Debug)]
pub struct Victim {
    /// Stays on TCP, because this process runs without the library.
    pub stream: TcpStream,
    /// The connection's addresses, seen from the client.
    pub tuple: Tuple,
}

impl Victim {
    /// Connects from `source`, sets the mark and sends a few messages.
    ///
    /// # Panics
    /// If the server does not accept.
    pub fn meet(source: [u8; 4], target: [u8; 4], port: u16) -> Self {
        Self::meet_on(sys::connect_from(source, target, port).expect("the server accepts"))
    }

    /// Sets the mark on an existing connection, and sends a few messages.
    ///
    /// # Panics
    /// If it is not connected.
    pub fn meet_on(stream: TcpStream) -> Self {
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        let tuple = Tuple::of(stream.as_raw_fd()).expect("a connected socket");
        diag::mark(stream.as_raw_fd(), true).expect("a socket option");
        let mut victim = Self { stream, tuple };
        victim.chat(3);
        victim
    }

    /// Exchanges a few messages by TCP, which Redis and an echo server answer, so that the server
    /// calls its library; the answers are ignored.
    pub fn chat(&mut self, count: u32) {
        for _ in 0..count {
            self.is_served();
        }
    }

    /// Exchanges one message; false if the server has ended the connection, which is allowed.
    pub fn is_served(&mut self) -> bool {
        let over = |error: io::Error| error.kind() != io::ErrorKind::WouldBlock;
        let refused = self.stream.write(b"PING\r\n").is_err_and(over);
        let ended = match self.stream.read(&mut [0; 64]) {
            Ok(bytes) => bytes == 0,
            Err(error) => over(error),
        };
        !refused && !ended
    }

    /// Connects to the server's offer.
    pub fn visit(&mut self) -> Option<RawFd> {
        for _ in 0..200 {
            if let Ok(fd) = rendezvous::connect(&self.tuple, FLOOR) {
                return Some(fd);
            }
            self.chat(1);
        }
        None
    }

    /// Proposes slot 0 of a new segment.
    ///
    /// # Errors
    /// The step at which the victim declined, in words.
    ///
    /// # Panics
    /// If there is no memory for a segment.
    pub fn share_own_segment(&mut self) -> Result<Segment, &'static str> {
        let Some(visit) = self.visit() else {
            return Err("no offer");
        };
        let segment = Segment::create(FLOOR).expect("memory for a segment");
        segment
            .populate_start(SlotIndex::FIRST)
            .expect("memory for a ring");
        let slot = segment.slot(SlotIndex::FIRST);
        for ring in &slot.rings {
            ring.reset(START_SHIFT);
        }
        slot.agreement.request(&self.tuple.key());
        let proposal = Proposal::new(&self.tuple, segment.id(), 0, LARGEST_SHIFT);
        if rendezvous::propose(visit, &proposal, Some(segment.fd())).is_err() {
            return Err("a visit that was hung up on");
        }
        let agreed = || slot.agreement.is_accepted();
        for _ in 0..100 {
            if agreed() {
                break;
            }
            self.chat(1);
        }
        if !agreed() {
            return Err("a refusal");
        }
        Ok(segment)
    }

    /// Offers, and accepts the slot that the victim proposes in a segment of its own. Returns the
    /// segment and the slot's index.
    ///
    /// # Errors
    /// The step that was reached, in words.
    ///
    /// # Panics
    /// If the victim's segment is invalid.
    pub fn take_given_segment(&mut self) -> Result<(Segment, SlotIndex), &'static str> {
        let Ok(offer) = rendezvous::offer(&self.tuple, FLOOR) else {
            return Err("no name");
        };
        let mut taken = None;
        for _ in 0..200 {
            self.chat(1);
            if let Ok(visitor) = rendezvous::accept(offer, FLOOR) {
                taken = self.accept_proposal(visitor);
                kernel::close(visitor);
            }
            if taken.is_some() {
                break;
            }
        }
        kernel::close(offer);
        taken.ok_or("no visit")
    }

    fn accept_proposal(&mut self, visitor: RawFd) -> Option<(Segment, SlotIndex)> {
        for _ in 0..50 {
            match rendezvous::receive(visitor) {
                Ok((proposal, Some(memory))) => {
                    let segment = Segment::adopt(memory, FLOOR).expect("a sealed segment");
                    let index = SlotIndex::new(proposal.slot)?;
                    let accepted = segment.slot(index).agreement.accept(&proposal.key);
                    assert!(accepted, "the slot was proposed for this connection");
                    self.chat(4);
                    return Some((segment, index));
                }
                // A segment that we received earlier and have unmapped.
                Ok((_, None)) => {
                    rendezvous::refuse(visitor, Refusal::UnknownSegment);
                    self.chat(2);
                    return None;
                }
                Err(_) => self.chat(1),
            }
        }
        None
    }
}

/// Removes all bytes from a ring that the victim writes, without reading them.
pub fn drain(ring: &Ring) {
    let unread = ring.pending(STRIDE_SHIFT).unwrap_or(0);
    ring.skip(ring.tail(), unread);
}

/// Opens the memory behind a descriptor for writing without a mapping.
///
/// # Panics
/// If it cannot be opened.
pub fn open_memory(memory: RawFd) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{memory}"))
        .expect("our own memory")
}

/// Overwrites one word of the header with a value that may break something.
///
/// # Panics
/// If the memory cannot be written.
pub fn write_word(file: &File, rng: &mut Rng) {
    let header = u64::try_from(HEADER_BYTES).expect("small");
    // The first slots matter most; the wait slots before them wake the victim.
    let reach = if rng.below(2) == 0 {
        header.min(24 << 10)
    } else {
        header
    };
    let at = rng.below(reach / 8) * 8;
    write_value(file, at, rng);
}

fn write_value(file: &File, at: u64, rng: &mut Rng) {
    let value = match rng.below(7) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::from(u32::MAX),
        4 => 1 << rng.below(64),
        5 => rng.below(1 << 21),
        _ => rng.next_u64(),
    };
    file.write_all_at(&value.to_le_bytes(), at)
        .expect("sealed against size only");
}

/// Runs `act` while another thread overwrites every word of the header without a pause.
///
/// # Panics
/// If the memory cannot be written.
pub fn amid_a_storm<T>(memory: RawFd, seed: u64, act: impl FnOnce() -> T) -> T {
    let (file, mut rng) = (open_memory(memory), Rng::new(seed));
    let mut words = (0..u64::try_from(HEADER_BYTES).expect("small"))
        .step_by(8)
        .cycle();
    beside(act, || {
        write_word(&file, &mut rng);
        write_value(&file, words.next().unwrap_or(0), &mut rng);
    })
}

/// Runs `act` while another thread calls `again` repeatedly.
pub fn beside<T>(act: impl FnOnce() -> T, mut again: impl FnMut() + Send) -> T {
    /// Ends the other thread when the caller's part ends in any way.
    struct Until<'a>(&'a AtomicBool);
    impl Drop for Until<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _until = Until(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                again();
            }
        });
        act()
    })
}
