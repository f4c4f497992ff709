//! A peer of the same user that breaks the rules of the rendezvous and of shared memory, with the
//! channel crate's own types.
//!
//! `hostile MODE SERVER_PORT SEED` connects to an echo server that runs under the library, on every
//! address; this program runs without it. The addresses decide which end offers: the lower one.
//! Prints "reached STEP": the last step of the attack before the victim stopped it.

use std::{
    fs::File,
    io::{ErrorKind, Read as _, Write as _},
    mem::offset_of,
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::fs::FileExt as _,
    },
    sync::atomic::Ordering,
    time::Duration,
};

use saiga_channel::{
    barriers,
    layout::{HEADER_BYTES, Header, STRIDE_SHIFT, Side, SideBlock, Slot, SlotIndex, WAIT_SLOTS},
    rendezvous::{self, Proposal, Refusal},
    ring::Ring,
    segment::Segment,
    sys as kernel,
    tuple::Tuple,
};
use saiga_trials::{
    scale::Rng,
    sys,
    victim::{FLOOR, LARGEST_SHIFT, Victim, amid_a_storm, drain, open_memory, write_word},
};

/// More segments than a peer with so few connections needs.
const MANY_SEGMENTS: usize = 200;
/// A server that answers no client for this long counts as hung.
const HANG: Duration = Duration::from_secs(1);
/// More bytes than a peer can get by recalls: one call of the server sends at most 4 MiB.
const MORE_THAN_CALLS: usize = 1 << 30;
/// The bit of a producer's word that ends its ring, and the position of the capacity's logarithm in
/// the next word.
const FROZEN: u64 = 1 << 63;
const SHIFT_AT: u32 = 56;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, mode, port, seed] = words.as_slice() else {
        panic!("hostile MODE PORT SEED")
    };
    let port = port.parse().expect("a port");
    let mut rng = Rng::new(seed.parse().expect("a seed"));
    if mode == "dawdling" {
        barriers::join(); // Before the first segment, as an honest library does.
    }
    let (low, high) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let (source, target) = if matches!(mode.as_str(), "given" | "storm-given" | "newer-host") {
        (low, high)
    } else {
        (high, low)
    };
    let mut attack = Attack(if mode == "stalled" {
        let stream = sys::connect_narrowly(source, target, port);
        Victim::meet_on(stream.expect("the server accepts"))
    } else {
        Victim::meet(source, target, port)
    });
    let step = match mode.as_str() {
        "silent" => attack.visit_with(|_, _| {}, &mut rng),
        "nonsense" => attack.visit_with(send_nonsense, &mut rng),
        "proposals" => attack.visit_with(send_wrong_proposal, &mut rng),
        "descriptors" => attack.visit_with(send_wrong_descriptor, &mut rng),
        "newer" => attack.propose_by_another_protocol(),
        "newer-host" => attack.refuse_its_protocol(),
        "made" => attack.corrupt_own_segment(&mut rng),
        "storm-made" => attack.storm_over_own_segment(&mut rng),
        "locked" => attack.write_its_block(),
        "segments" => attack.give_many_segments(port),
        "bells" => attack.name_many_bells(),
        "dawdling" => attack.leave_without_notice(Duration::from_secs(10)),
        "outside" => attack.leave_without_notice(Duration::from_secs(1)),
        "stalled" => attack.take_nothing_back(target, port),
        "endless" => attack.take_back_without_end(),
        "given" => attack.corrupt_given_segment(&mut rng),
        "storm-given" => attack.storm_over_given_segment(&mut rng),
        other => panic!("no mode {other}"),
    };
    println!("reached {step}");
}

/// The attacks of this program.
struct Attack(Victim);

impl Attack {
    /// Pretends to be inside a receive while the server's ring ends. Leaves the receive later
    /// without having noticed the switch to that ring, like a stopped thread. The server waits to
    /// send.
    fn leave_without_notice(&mut self, patience: Duration) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        let slot = segment.slot(SlotIndex::FIRST);
        let (ring, stream) = (&slot.rings[1], &mut self.0.stream);
        slot.sides[0].receiving.store(1, Ordering::SeqCst);
        ring.set_ready();
        while !ring.readable() {
            stream.write_all(b"a").expect("a sound connection");
            // An answer by TCP must not be taken for the one expected below.
            let _ = stream.read(&mut [0; 64]);
        }
        ring.freeze();
        stream.write_all(b"b").expect("a sound connection");
        while slot.sides[1].tx_wait_slots.bits() == 0 {
            std::thread::yield_now(); // The server does not sleep yet.
        }
        slot.sides[0].receiving.store(0, Ordering::SeqCst);
        stream
            .set_read_timeout(Some(patience))
            .expect("a socket option");
        match stream.read(&mut [0; 64]) {
            Ok(1..) => "the answer",
            Ok(0) | Err(_) => "no answer",
        }
    }

    /// Lets the server fill a ring, recalls all of it, and reads nothing. The server must send
    /// those bytes by TCP before it ends the connection, and must still serve other clients, or
    /// end.
    fn take_nothing_back(&mut self, server: [u8; 4], port: u16) -> &'static str {
        let mut beside = sys::connect_from(server, server, port).expect("the server accepts");
        beside
            .set_read_timeout(Some(HANG))
            .expect("a socket option");
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        if !self.have_ring_filled(&segment) {
            return "a reset";
        }
        segment.slot(SlotIndex::FIRST).rings[1].recall();
        // The answer finds no room, neither in the ring nor on TCP: the server drops the
        // connection.
        let _ = self.0.stream.write(b"and one more");
        for _ in 0..100 {
            let answer = beside.write_all(b"?").and_then(|()| beside.read(&mut [0]));
            match answer {
                Ok(1) => {}
                Err(late) if late.kind() == ErrorKind::WouldBlock => return "a frozen server",
                Ok(_) | Err(_) => return "the server's end",
            }
        }
        "the end"
    }

    /// Sends until a quarter of a MiB of echo is in the ring; false if the server resets.
    fn have_ring_filled(&mut self, segment: &Segment) -> bool {
        let ring = &segment.slot(SlotIndex::FIRST).rings[1];
        ring.acknowledge();
        ring.set_ready();
        let enough = 256 << 10;
        while ring.pending(STRIDE_SHIFT).is_some_and(|n| n < enough) {
            if self.0.stream.write(&[b'x'; 4096]).is_err() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Recalls a ring, takes the bytes that the server sends by TCP, and publishes all the time
    /// that the ring has more: a server thread that looped until the ring is empty would never
    /// return.
    fn take_back_without_end(&mut self) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        if !self.have_ring_filled(&segment) {
            return "a reset";
        }
        let (memory, ring) = (
            open_memory(segment.fd()),
            &segment.slot(SlotIndex::FIRST).rings[1],
        );
        let words = offset_of!(Header, slots) + offset_of!(Slot, rings) + size_of::<Ring>();
        let words = u64::try_from(words).expect("small");
        let refill = || {
            let head = (ring.tail() + (1 << STRIDE_SHIFT)) | FROZEN;
            let geometry = u64::from(STRIDE_SHIFT) << SHIFT_AT;
            let both = [head.to_le_bytes(), geometry.to_le_bytes()].concat();
            memory
                .write_all_at(&both, words)
                .expect("sealed against size only");
        };
        let stream = &mut self.0.stream;
        stream.set_read_timeout(Some(HANG)).expect("an option");
        refill();
        ring.recall();
        let (mut taken, mut block) = (0, vec![0; 1 << 22]);
        while taken < MORE_THAN_CALLS {
            let _ = stream.write(b"?"); // Makes the server call its library.
            // Dropped unread, so that the server's thread always finds room.
            match kernel::recv(stream.as_raw_fd(), &mut block, libc::MSG_TRUNC) {
                Err(kernel::Errno(libc::EAGAIN)) => return "silence",
                // A reset, or an answer: the ring was empty for a moment.
                Ok(0 | 1) | Err(_) => return "the end",
                Ok(more) => taken += more,
            }
            refill();
        }
        "no end"
    }

    fn visit_with(&mut self, say: fn(RawFd, (&Tuple, &mut Rng)), rng: &mut Rng) -> &'static str {
        let Some(fd) = self.0.visit() else {
            return "no offer";
        };
        let tuple = self.0.tuple;
        say(fd, (&tuple, rng));
        self.0.chat(20);
        kernel::close(fd);
        self.0.chat(3);
        "the visit"
    }

    /// Proposes as a later Saiga might: a longer message, of which only the number is known.
    fn propose_by_another_protocol(&mut self) -> &'static str {
        let Some(visit) = self.0.visit() else {
            return "no offer";
        };
        let mut proposal = Proposal::new(&self.0.tuple, 1, 0, LARGEST_SHIFT);
        proposal.protocol += 1;
        let message = [&proposal.encode()[..], b"and more"].concat();
        kernel::sendto(visit, &message, libc::MSG_NOSIGNAL, &[]).expect("the server listens");
        for _ in 0..200 {
            self.0.chat(1);
            match rendezvous::refusal(visit) {
                None => {}
                Some(Refusal::Version) => return self.talk_on(),
                Some(_) => return "another refusal",
            }
        }
        "no answer"
    }

    /// Offers, and answers the proposal as a later Saiga would.
    fn refuse_its_protocol(&mut self) -> &'static str {
        let Ok(offer) = rendezvous::offer(&self.0.tuple, FLOOR) else {
            return "no name";
        };
        for _ in 0..200 {
            self.0.chat(1);
            let Ok(visitor) = rendezvous::accept(offer, FLOOR) else {
                continue;
            };
            // The refusal arrives before the visitor's next message.
            rendezvous::refuse(visitor, Refusal::Version);
            return self.talk_on();
        }
        "no visit"
    }

    /// Checks that the connection still works on TCP.
    fn talk_on(&mut self) -> &'static str {
        let patience = Some(Duration::from_secs(10));
        self.0.stream.set_read_timeout(patience).expect("an option");
        let (mut echo, mut block) = (Vec::new(), [0; 64]);
        for turn in 0..100 {
            let said = format!("turn {turn} by TCP;");
            self.0
                .stream
                .write_all(said.as_bytes())
                .expect("a sound connection");
            while !echo.ends_with(said.as_bytes()) {
                let got = self.0.stream.read(&mut block).expect("an echo");
                assert!(got > 0, "the server hung up in turn {turn}");
                echo.extend_from_slice(&block[..got]);
            }
        }
        "the version"
    }

    /// Proposes a valid segment, then overwrites it at random.
    fn corrupt_own_segment(&mut self, rng: &mut Rng) -> &'static str {
        match self.0.share_own_segment() {
            Ok(segment) => self.scribble(segment.fd(), rng),
            Err(step) => return step,
        }
        "the segment"
    }

    /// The same, while every word of the segment is overwritten without a pause.
    fn storm_over_own_segment(&mut self, rng: &mut Rng) -> &'static str {
        match self.0.share_own_segment() {
            Ok(segment) => self.talk_amid_a_storm(&segment, rng),
            Err(step) => step,
        }
    }

    /// Writes the id of a living thread into every word of the victim's side of the channel, as if
    /// that thread held a lock there. Both ends still communicate by TCP.
    fn write_its_block(&mut self) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        let its_block =
            offset_of!(Header, slots) + offset_of!(Slot, sides) + size_of::<SideBlock>();
        let ids = std::process::id()
            .to_le_bytes()
            .repeat(size_of::<SideBlock>() / 4);
        let memory = open_memory(segment.fd());
        for _ in 0..20 {
            memory
                .write_all_at(&ids, its_block.try_into().expect("small"))
                .expect("sealed against size only");
            self.talk_on();
        }
        "the end"
    }

    /// Sends a segment for each connection, until the victim declines one. All stay open.
    fn give_many_segments(&mut self, port: u16) -> &'static str {
        let mut held = Vec::new();
        for _ in 0..MANY_SEGMENTS {
            let mut victim = Victim::meet([127, 0, 0, 2], [127, 0, 0, 1], port);
            match victim.share_own_segment() {
                Ok(segment) => held.push((victim, segment)),
                Err(step) => return step,
            }
        }
        "as many as there are"
    }

    /// Makes every message of the victim wake all wait slots.
    fn name_many_bells(&mut self) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        let slot = segment.slot(SlotIndex::FIRST);
        let (ring, block) = (&slot.rings[1], &slot.sides[0]);
        (0..WAIT_SLOTS).for_each(|index| block.rx_wait_slots.enter(index));
        ring.acknowledge();
        ring.set_ready();
        self.have_short_waits(); // Most answers come by the ring.
        for _ in 0..1000 {
            for index in 0..WAIT_SLOTS {
                let _ = segment.wait_slot(Side(0), index).sleep();
            }
            ring.arm();
            self.0.chat(1);
            drain(ring);
            if ring.frozen() {
                return self.talk_on();
            }
        }
        "no end"
    }

    /// Makes a valid offer, then overwrites the segment that the server sends.
    fn corrupt_given_segment(&mut self, rng: &mut Rng) -> &'static str {
        match self.0.take_given_segment() {
            Ok((segment, _)) => self.scribble(segment.fd(), rng),
            Err(step) => return step,
        }
        "the segment"
    }

    /// The same, without a pause.
    fn storm_over_given_segment(&mut self, rng: &mut Rng) -> &'static str {
        match self.0.take_given_segment() {
            Ok((segment, _)) => self.talk_amid_a_storm(&segment, rng),
            Err(step) => step,
        }
    }

    fn talk_amid_a_storm(&mut self, segment: &Segment, rng: &mut Rng) -> &'static str {
        self.have_short_waits();
        amid_a_storm(segment.fd(), rng.next_u64(), || self.0.chat(150));
        "the segment"
    }

    fn have_short_waits(&self) {
        let short = Some(Duration::from_millis(1));
        self.0.stream.set_read_timeout(short).expect("an option");
    }

    /// Overwrites words of the shared header repeatedly, between messages.
    fn scribble(&mut self, memory: RawFd, rng: &mut Rng) {
        let file = open_memory(memory);
        self.have_short_waits();
        for _ in 0..150 {
            for _ in 0..rng.below(64) {
                write_word(&file, rng);
            }
            self.0.chat(1);
        }
        let all = vec![0xff; HEADER_BYTES];
        file.write_all_at(&all, 0)
            .expect("sealed against size only");
        self.0.chat(3);
    }
}

fn send_nonsense(fd: RawFd, (_, rng): (&Tuple, &mut Rng)) {
    for _ in 0..=rng.below(3) {
        let length = usize::try_from(rng.below(200)).expect("small");
        let bytes: Vec<u8> = (0..length)
            .map(|_| rng.next_u64().to_le_bytes()[0])
            .collect();
        // The victim may have closed the connection, which is allowed.
        let _ = kernel::sendto(fd, &bytes, libc::MSG_NOSIGNAL, &[]);
    }
}

fn send_wrong_proposal(fd: RawFd, (tuple, rng): (&Tuple, &mut Rng)) {
    let mut proposal = Proposal::new(tuple, rng.next_u64(), 0, LARGEST_SHIFT);
    match rng.below(5) {
        0 => proposal.protocol = proposal.protocol.wrapping_add(1),
        1 => proposal.key[5] ^= 0x40,
        2 => proposal.slot = u32::MAX,
        3 => proposal.max_shift = u32::MAX,
        _ => {} // A segment that no process knows.
    }
    let _ = rendezvous::propose(fd, &proposal, None);
}

fn send_wrong_descriptor(fd: RawFd, (tuple, rng): (&Tuple, &mut Rng)) {
    let proposal = Proposal::new(tuple, rng.next_u64(), 0, LARGEST_SHIFT);
    let memory = kernel::memfd(c"not-a-segment", 0).expect("a descriptor");
    match rng.below(4) {
        0 => {} // Empty and not sealed.
        1 => kernel::ftruncate(memory, 1 << 30).expect("a sparse file"),
        2 => {
            kernel::ftruncate(memory, saiga_channel::layout::SEGMENT_BYTES).expect("a sparse file")
        }
        _ => {
            let null = File::open("/dev/null").expect("it exists");
            let _ = rendezvous::propose(fd, &proposal, Some(null.as_raw_fd()));
            return;
        }
    }
    let _ = rendezvous::propose(fd, &proposal, Some(memory));
    // Shrunk after it was sent: SIGBUS for a process that mapped it without a check.
    let _ = kernel::ftruncate(memory, 0);
    kernel::close(memory);
}
