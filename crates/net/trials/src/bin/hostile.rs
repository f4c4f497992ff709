//! A peer of the same user that breaks the rules of the rendezvous and of shared
//! memory, spoken with the channel crate's own types.
//!
//! `hostile MODE SERVER_PORT SEED` talks to an echo server that runs under the
//! library, on every address; this program runs without it. Whether the server
//! offers or is offered to follows from the addresses: the lower one offers.
//! Prints "reached STEP": how far the victim let it come.

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
    layout::{DATA_AT, Header, STRIDE_SHIFT, Side, SideBlock, Slot, WAIT_SLOTS},
    rendezvous::{self, Proposal, Refusal},
    ring::Ring,
    segment::Segment,
    sys as kernel,
    tuple::Tuple,
};
use saiga_trials::{
    scale::Dice,
    sys,
    victim::{FLOOR, LARGEST_SHIFT, Victim, amid_a_storm, drain, open_memory, write_word},
};

/// Segments that no peer with so few connections needs.
const MANY_SEGMENTS: usize = 200;
/// A server that answers nobody for so long counts as hung.
const HANG: Duration = Duration::from_secs(1);
/// Bytes that a peer does not get by recalls: one call of the server's sends at most 4 MiB.
const MORE_THAN_CALLS: usize = 1 << 30;
/// The bit of a producer's word that ends its ring, and the place of its capacity's logarithm in
/// the word behind that.
const FROZEN: u64 = 1 << 63;
const SHIFT_AT: u32 = 56;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, mode, port, seed] = words.as_slice() else {
        panic!("hostile MODE PORT SEED")
    };
    let port = port.parse().expect("a port");
    let mut dice = Dice::new(seed.parse().expect("a seed"));
    if mode == "dawdling" {
        barriers::join(); // Before there are segments, as an honest library does.
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
        "silent" => attack.visit_with(|_, _| {}, &mut dice),
        "nonsense" => attack.visit_with(send_nonsense, &mut dice),
        "proposals" => attack.visit_with(send_wrong_proposal, &mut dice),
        "descriptors" => attack.visit_with(send_wrong_descriptor, &mut dice),
        "newer" => attack.propose_by_another_protocol(),
        "newer-host" => attack.refuse_its_protocol(),
        "made" => attack.corrupt_own_segment(&mut dice),
        "storm-made" => attack.storm_over_own_segment(&mut dice),
        "locked" => attack.write_its_block(),
        "segments" => attack.give_many_segments(port),
        "bells" => attack.name_many_bells(),
        "dawdling" => attack.leave_without_notice(Duration::from_secs(10)),
        "outside" => attack.leave_without_notice(Duration::from_secs(1)),
        "stalled" => attack.take_nothing_back(target, port),
        "endless" => attack.take_back_without_end(),
        "given" => attack.corrupt_given_segment(&mut dice),
        "storm-given" => attack.storm_over_given_segment(&mut dice),
        other => panic!("no mode {other}"),
    };
    println!("reached {step}");
}

/// The attacks of this program.
struct Attack(Victim);

impl Attack {
    /// Seems to be inside a receive while the server's ring ends. Leaves the receive later without
    /// having noticed the switch to that ring, as a stopped thread does. The server waits to send.
    fn leave_without_notice(&mut self, patience: Duration) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        let slot = segment.slot(0);
        let (ring, stream) = (&slot.rings[1], &mut self.0.stream);
        slot.sides[0].receiving.store(1, Ordering::SeqCst);
        ring.set_ready();
        while !ring.readable() {
            stream.write_all(b"a").expect("a sound connection");
            // What it answered by TCP must not be taken for what is asked for below.
            let _ = stream.read(&mut [0; 64]);
        }
        ring.freeze();
        stream.write_all(b"b").expect("a sound connection");
        while slot.sides[1].tx_wait_slots.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now(); // It is not asleep yet.
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

    /// Lets the server fill a ring, recalls all of it, reads nothing, and stays. The server, which
    /// must send those bytes by TCP before it ends the connection, has others to serve, or ends.
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
        segment.slot(0).rings[1].recall();
        // Its answer finds no room, neither there nor by TCP: it drops the connection.
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

    /// Sends until a quarter of a MiB of echo is in the ring; false when the server resets.
    fn have_ring_filled(&mut self, segment: &Segment) -> bool {
        let ring = &segment.slot(0).rings[1];
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

    /// Recalls a ring, takes by TCP what the server sends, and says all the while that the ring
    /// has more: a thread of the server's that went on until it is empty would never come back.
    fn take_back_without_end(&mut self) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        if !self.have_ring_filled(&segment) {
            return "a reset";
        }
        let (memory, ring) = (open_memory(segment.fd()), &segment.slot(0).rings[1]);
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
            let _ = stream.write(b"?"); // The server comes by.
            // Dropped unread, so that the server's thread finds room all the time.
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

    fn visit_with(&mut self, say: fn(RawFd, (&Tuple, &mut Dice)), dice: &mut Dice) -> &'static str {
        let Some(fd) = self.0.visit() else {
            return "no offer";
        };
        let tuple = self.0.tuple;
        say(fd, (&tuple, dice));
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
        kernel::sendto(visit, &message, libc::MSG_NOSIGNAL, &[]).expect("it is listening");
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
            // It is there before the visitor's next message of ours.
            rendezvous::refuse(visitor, Refusal::Version);
            return self.talk_on();
        }
        "no visit"
    }

    /// The connection must still be as good as any.
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

    /// A correct proposal of a segment that is then overwritten at random.
    fn corrupt_own_segment(&mut self, dice: &mut Dice) -> &'static str {
        match self.0.share_own_segment() {
            Ok(segment) => self.scribble(segment.fd(), dice),
            Err(step) => return step,
        }
        "the segment"
    }

    /// The same, while every word of it is overwritten without a pause.
    fn storm_over_own_segment(&mut self, dice: &mut Dice) -> &'static str {
        match self.0.share_own_segment() {
            Ok(segment) => self.talk_amid_a_storm(&segment, dice),
            Err(step) => step,
        }
    }

    /// In every word that belongs to the victim's side of the channel stands the id of a living
    /// thread, as if that thread held a lock there. Both ends still talk, by TCP.
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

    /// A segment for each connection, until the victim declines one. All stay open.
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

    /// Every message of the victim's has to wake all waiting places that there can be.
    fn name_many_bells(&mut self) -> &'static str {
        let segment = match self.0.share_own_segment() {
            Ok(segment) => segment,
            Err(step) => return step,
        };
        let slot = segment.slot(0);
        let (ring, block) = (&slot.rings[1], &slot.sides[0]);
        block.rx_wait_slots.store(u64::MAX, Ordering::SeqCst);
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

    /// An honest offer; the segment that the server gives is then overwritten.
    fn corrupt_given_segment(&mut self, dice: &mut Dice) -> &'static str {
        match self.0.take_given_segment() {
            Ok((segment, _)) => self.scribble(segment.fd(), dice),
            Err(step) => return step,
        }
        "the segment"
    }

    /// The same, without a pause.
    fn storm_over_given_segment(&mut self, dice: &mut Dice) -> &'static str {
        match self.0.take_given_segment() {
            Ok((segment, _)) => self.talk_amid_a_storm(&segment, dice),
            Err(step) => step,
        }
    }

    fn talk_amid_a_storm(&mut self, segment: &Segment, dice: &mut Dice) -> &'static str {
        self.have_short_waits();
        amid_a_storm(segment.fd(), dice.roll(), || self.0.chat(150));
        "the segment"
    }

    fn have_short_waits(&self) {
        let short = Some(Duration::from_millis(1));
        self.0.stream.set_read_timeout(short).expect("an option");
    }

    /// Overwrites words of the shared header again and again, between messages.
    fn scribble(&mut self, memory: RawFd, dice: &mut Dice) {
        let file = open_memory(memory);
        self.have_short_waits();
        for _ in 0..150 {
            for _ in 0..dice.below(64) {
                write_word(&file, dice);
            }
            self.0.chat(1);
        }
        let all = vec![0xff; DATA_AT];
        file.write_all_at(&all, 0)
            .expect("sealed against size only");
        self.0.chat(3);
    }
}

fn send_nonsense(fd: RawFd, (_, dice): (&Tuple, &mut Dice)) {
    for _ in 0..=dice.below(3) {
        let length = usize::try_from(dice.below(200)).expect("small");
        let bytes: Vec<u8> = (0..length).map(|_| dice.roll().to_le_bytes()[0]).collect();
        // The victim may have hung up: its right.
        let _ = kernel::sendto(fd, &bytes, libc::MSG_NOSIGNAL, &[]);
    }
}

fn send_wrong_proposal(fd: RawFd, (tuple, dice): (&Tuple, &mut Dice)) {
    let mut proposal = Proposal::new(tuple, dice.roll(), 0, LARGEST_SHIFT);
    match dice.below(5) {
        0 => proposal.protocol = proposal.protocol.wrapping_add(1),
        1 => proposal.key[5] ^= 0x40,
        2 => proposal.slot = u32::MAX,
        3 => proposal.max_shift = u32::MAX,
        _ => {} // a segment that no process knows
    }
    let _ = rendezvous::propose(fd, &proposal, None);
}

fn send_wrong_descriptor(fd: RawFd, (tuple, dice): (&Tuple, &mut Dice)) {
    let proposal = Proposal::new(tuple, dice.roll(), 0, LARGEST_SHIFT);
    let memory = kernel::memfd(c"not-a-segment", 0).expect("a descriptor");
    match dice.below(4) {
        0 => {} // empty, unsealed
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
    // Shrunk behind the victim's back: SIGBUS for a process that mapped it unchecked.
    let _ = kernel::ftruncate(memory, 0);
    kernel::close(memory);
}
