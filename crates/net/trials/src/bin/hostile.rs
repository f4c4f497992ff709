//! A peer of the same user that breaks the rules of the rendezvous and of shared
//! memory, spoken with the channel crate's own types.
//!
//! `hostile MODE SERVER_PORT SEED` talks to an echo server that runs under the
//! library, on every address; this program runs without it. Whether the server
//! offers or is offered to follows from the addresses: the lower one offers.
//! Prints "reached STEP": how far the victim let it come.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    mem::offset_of,
    net::TcpStream,
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::fs::FileExt as _,
    },
    time::Duration,
};

use saiga_channel::{
    diag,
    layout::{DATA_AT, Header, START_SHIFT, SideBlock, Slot},
    rendezvous::{self, Proposal, Refusal},
    segment::Segment,
    sys as kernel,
    tuple::Tuple,
};
use saiga_trials::{scale::Dice, sys};

const FLOOR: usize = 3;
const LARGEST_SHIFT: u32 = 20;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, mode, port, seed] = words.as_slice() else {
        panic!("hostile MODE PORT SEED")
    };
    let port = port.parse().expect("a port");
    let mut dice = Dice::new(seed.parse().expect("a seed"));
    let (low, high) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let (source, target) = if matches!(mode.as_str(), "given" | "newer-host") {
        (low, high)
    } else {
        (high, low)
    };
    let mut victim = Victim::meet(source, target, port);
    let step = match mode.as_str() {
        "silent" => victim.visit_with(|_, _| {}, &mut dice),
        "nonsense" => victim.visit_with(send_nonsense, &mut dice),
        "proposals" => victim.visit_with(send_wrong_proposal, &mut dice),
        "descriptors" => victim.visit_with(send_wrong_descriptor, &mut dice),
        "newer" => victim.propose_by_another_protocol(),
        "newer-host" => victim.refuse_its_protocol(),
        "made" => victim.corrupt_own_segment(&mut dice),
        "locked" => victim.write_its_block(),
        "given" => victim.corrupt_given_segment(&mut dice),
        other => panic!("no mode {other}"),
    };
    println!("reached {step}");
}

/// The connection to the server under attack.
struct Victim {
    stream: TcpStream,
    tuple: Tuple,
}

impl Victim {
    fn meet(source: [u8; 4], target: [u8; 4], port: u16) -> Self {
        let stream = sys::connect_from(source, target, port).expect("the server accepts");
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        let tuple = Tuple::of(stream.as_raw_fd()).expect("it is connected");
        diag::mark(stream.as_raw_fd(), true).expect("a socket option");
        let mut victim = Self { stream, tuple };
        victim.chat(3);
        victim
    }

    /// A few messages over TCP, so that the server comes by; answers do not matter.
    fn chat(&mut self, count: u32) {
        for _ in 0..count {
            // The server may have reset us by now, which is its right.
            let _ = self.stream.write(b"hostile");
            let _ = self.stream.read(&mut [0; 64]);
        }
    }

    /// Connects to the server's offer.
    fn visit(&mut self) -> Option<RawFd> {
        for _ in 0..200 {
            if let Ok(fd) = rendezvous::connect(&self.tuple, FLOOR) {
                return Some(fd);
            }
            self.chat(1);
        }
        None
    }

    fn visit_with(&mut self, say: fn(RawFd, (&Tuple, &mut Dice)), dice: &mut Dice) -> &'static str {
        let Some(fd) = self.visit() else {
            return "no offer";
        };
        let tuple = self.tuple;
        say(fd, (&tuple, dice));
        self.chat(20);
        kernel::close(fd);
        self.chat(3);
        "the visit"
    }

    /// Proposes as a later Saiga might: a longer message, of which only the number is known.
    fn propose_by_another_protocol(&mut self) -> &'static str {
        let Some(visit) = self.visit() else {
            return "no offer";
        };
        let mut proposal = Proposal::new(&self.tuple, 1, 0, LARGEST_SHIFT);
        proposal.protocol += 1;
        let message = [&proposal.encode()[..], b"and more"].concat();
        kernel::sendto(visit, &message, libc::MSG_NOSIGNAL, &[]).expect("it is listening");
        for _ in 0..200 {
            self.chat(1);
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
        let Ok(offer) = rendezvous::offer(&self.tuple, FLOOR) else {
            return "no name";
        };
        for _ in 0..200 {
            self.chat(1);
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
        self.stream.set_read_timeout(patience).expect("an option");
        let (mut echo, mut block) = (Vec::new(), [0; 64]);
        for turn in 0..100 {
            let said = format!("turn {turn} by TCP;");
            self.stream
                .write_all(said.as_bytes())
                .expect("a sound connection");
            while !echo.ends_with(said.as_bytes()) {
                let got = self.stream.read(&mut block).expect("an echo");
                assert!(got > 0, "the server hung up in turn {turn}");
                echo.extend_from_slice(&block[..got]);
            }
        }
        "the version"
    }

    /// A correct proposal of a segment that is then overwritten at random.
    fn corrupt_own_segment(&mut self, dice: &mut Dice) -> &'static str {
        match self.share_own_segment() {
            Ok(segment) => self.scribble(segment.fd(), dice),
            Err(step) => return step,
        }
        "the segment"
    }

    /// In every word that belongs to the victim's side of the channel stands the id of a living
    /// thread, as if that thread held a lock there. Both ends still talk, by TCP.
    fn write_its_block(&mut self) -> &'static str {
        let segment = match self.share_own_segment() {
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

    /// Proposes slot 0 of a new segment. The error says where the victim declined.
    fn share_own_segment(&mut self) -> Result<Segment, &'static str> {
        let Some(visit) = self.visit() else {
            return Err("no offer");
        };
        let segment = Segment::create(FLOOR).expect("memory for a segment");
        segment.populate_start(0).expect("memory for a ring");
        let slot = segment.slot(0);
        for ring in &slot.rings {
            ring.reset(START_SHIFT);
        }
        slot.agreement.request(&self.tuple.key());
        let proposal = Proposal::new(&self.tuple, segment.id(), 0, LARGEST_SHIFT);
        rendezvous::propose(visit, &proposal, Some(segment.fd())).expect("it is listening");
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

    /// An honest offer; the segment that the server gives is then overwritten.
    fn corrupt_given_segment(&mut self, dice: &mut Dice) -> &'static str {
        let Ok(offer) = rendezvous::offer(&self.tuple, FLOOR) else {
            return "no name";
        };
        for _ in 0..200 {
            self.chat(1);
            let Ok(visitor) = rendezvous::accept(offer, FLOOR) else {
                continue;
            };
            for _ in 0..50 {
                if let Ok((proposal, Some(memory))) = rendezvous::receive(visitor) {
                    let segment = Segment::adopt(memory, FLOOR).expect("it is sealed");
                    let slot = segment.slot(proposal.slot as usize);
                    assert!(slot.agreement.accept(&proposal.key), "it was proposed");
                    self.chat(4);
                    self.scribble(segment.fd(), dice);
                    return "the segment";
                }
                self.chat(1);
            }
        }
        "no visit"
    }

    /// Overwrites words of the shared header again and again, between messages.
    fn scribble(&mut self, memory: RawFd, dice: &mut Dice) {
        let file = open_memory(memory);
        self.stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("a socket option");
        for _ in 0..150 {
            for _ in 0..dice.below(64) {
                write_word(&file, dice);
            }
            self.chat(1);
        }
        let all = vec![0xff; DATA_AT];
        file.write_all_at(&all, 0)
            .expect("sealed against size only");
        self.chat(3);
    }
}

fn open_memory(memory: RawFd) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{memory}"))
        .expect("our own memory")
}

/// One word of the header becomes a value that breaks something.
fn write_word(file: &File, dice: &mut Dice) {
    let header = u64::try_from(DATA_AT).expect("small");
    // The first slots matter most; the places before them wake the victim.
    let reach = if dice.below(2) == 0 {
        header.min(24 << 10)
    } else {
        header
    };
    let at = dice.below(reach / 8) * 8;
    let value = match dice.below(7) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::from(u32::MAX),
        4 => 1 << dice.below(64),
        5 => dice.below(1 << 21),
        _ => dice.roll(),
    };
    file.write_all_at(&value.to_le_bytes(), at)
        .expect("sealed against size only");
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
        _ => {} // a segment that nobody knows
    }
    let _ = rendezvous::propose(fd, &proposal, None);
}

fn send_wrong_descriptor(fd: RawFd, (tuple, dice): (&Tuple, &mut Dice)) {
    let proposal = Proposal::new(tuple, dice.roll(), 0, LARGEST_SHIFT);
    let memory = kernel::memfd(c"not-a-segment").expect("a descriptor");
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
    // Shrunk behind the victim's back: SIGBUS for whoever mapped it unchecked.
    let _ = kernel::ftruncate(memory, 0);
    kernel::close(memory);
}
