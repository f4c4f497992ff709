//! A hostile client of the same user that repeats one attack for a given time.
//!
//! `besieger ATTACK PORT MILLISECONDS` attacks the redis-server at PORT of 127.0.0.1 and 127.0.0.2,
//! which runs under the library; this program runs without it. An attack is a sequence of rounds,
//! each with a new connection, because the server may reset the previous one. Prints the number of
//! rounds. `examples/siege.rs` measures a bystander during the attack.

#![expect(unsafe_code, reason = "unmaps segments")]

use std::{
    fs::File,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use saiga_channel::{
    bell::Ringer,
    layout::{HEADER_BYTES, Side, SlotIndex, WAIT_SLOTS},
    ring::Ring,
    segment::Segment,
    sys as kernel,
};
use saiga_trials::{
    scale::Rng,
    victim::{FLOOR, Victim, amid_a_storm, drain, open_memory, write_word},
};

/// Longest round with a channel, unless the server ends it.
const ROUND: Duration = Duration::from_millis(200);
/// Connections that the attack `segments` keeps open.
const CROWD: usize = 200;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, attack, port, time] = words.as_slice() else {
        panic!("besieger ATTACK PORT MILLISECONDS")
    };
    let mut siege = Siege {
        port: port.parse().expect("a port"),
        end: Instant::now() + Duration::from_millis(time.parse().expect("milliseconds")),
        rng: Rng::new(1),
        open: Vec::new(),
    };
    let round = match attack.as_str() {
        "equal-load" => Siege::equal_load,
        "words-made" => Siege::words_of_own_segment,
        "words-given" => Siege::words_of_given_segment,
        "storm-made" => Siege::storm_over_own_segment,
        "storm-given" => Siege::storm_over_given_segment,
        "many-bells" => Siege::many_bells,
        "bell-flood" => Siege::bell_flood,
        "offers" => Siege::offers,
        "segments" => Siege::segments,
        "no-acknowledgement" => Siege::no_acknowledgement,
        other => panic!("no attack {other}"),
    };
    let mut rounds = 0;
    while Instant::now() < siege.end {
        round(&mut siege);
        rounds += 1;
    }
    println!("rounds {rounds}");
}

/// State of the attack.
struct Siege {
    port: u16,
    end: Instant,
    rng: Rng,
    open: Vec<(Victim, Segment)>,
}

impl Siege {
    /// A new connection for which this program offers, so that the server receives our segment.
    fn meet(&self) -> Victim {
        let victim = Victim::meet([127, 0, 0, 2], [127, 0, 0, 1], self.port);
        let patience = Some(Duration::from_millis(1));
        victim.stream.set_read_timeout(patience).expect("an option");
        victim
    }

    /// Whether a round that began at `begin` should continue.
    fn goes_on(&self, begin: Instant) -> bool {
        let now = Instant::now();
        now < self.end && now - begin < ROUND
    }

    /// The cost of every attack without its harm: messages, and words written to private memory.
    fn equal_load(&mut self) {
        let mut victim = self.meet();
        let private = kernel::memfd(c"nobody-else-has-it", HEADER_BYTES).expect("memory");
        self.write_words(&mut victim, &open_memory(private));
        kernel::close(private);
    }

    /// Overwrites random words in the header of a segment that we made, between messages.
    fn words_of_own_segment(&mut self) {
        self.with_own_segment(|siege, victim, segment| {
            siege.write_words(victim, &open_memory(segment.fd()));
        });
    }

    /// The same for a segment that the server made.
    fn words_of_given_segment(&mut self) {
        self.with_given_segment(|siege, victim, segment| {
            siege.write_words(victim, &open_memory(segment.fd()));
        });
    }

    /// Overwrites every word in the header of a segment that we made, without a pause.
    fn storm_over_own_segment(&mut self) {
        self.with_own_segment(Self::storm);
    }

    /// The same for a segment that the server made.
    fn storm_over_given_segment(&mut self) {
        self.with_given_segment(Self::storm);
    }

    fn storm(&mut self, victim: &mut Victim, segment: &Segment) {
        let (begin, seed) = (Instant::now(), self.rng.next_u64());
        amid_a_storm(segment.fd(), seed, || {
            while self.goes_on(begin) && victim.is_served() {}
        });
    }

    fn with_own_segment(&mut self, act: impl FnOnce(&mut Self, &mut Victim, &Segment)) {
        let mut victim = self.meet();
        if let Ok(segment) = victim.share_own_segment() {
            act(self, &mut victim, &segment);
            release(segment);
        }
    }

    fn with_given_segment(&mut self, act: impl FnOnce(&mut Self, &mut Victim, &Segment)) {
        let mut victim = Victim::meet([127, 0, 0, 1], [127, 0, 0, 2], self.port);
        if let Ok((segment, _)) = victim.take_given_segment() {
            act(self, &mut victim, &segment);
            release(segment);
        }
    }

    /// Writes bursts of words, each followed by a message.
    fn write_words(&mut self, victim: &mut Victim, memory: &File) {
        let begin = Instant::now();
        while self.goes_on(begin) {
            for _ in 0..64 {
                write_word(memory, &mut self.rng);
            }
            if !victim.is_served() {
                return;
            }
        }
    }

    /// Makes every message of the server wake all wait slots of this side.
    fn many_bells(&mut self) {
        let mut victim = self.meet();
        let Ok(segment) = victim.share_own_segment() else {
            return;
        };
        let slot = segment.slot(SlotIndex::FIRST);
        let block = &slot.sides[0];
        for index in 0..WAIT_SLOTS {
            segment.wait_slot(Side(0), index).open(kernel::random());
        }
        for index in 0..WAIT_SLOTS {
            block.rx_wait_slots.enter(index);
            block.tx_wait_slots.enter(index);
        }
        let ring = &slot.rings[1];
        ring.acknowledge();
        ring.set_ready();
        let begin = Instant::now();
        while self.goes_on(begin) {
            for index in 0..WAIT_SLOTS {
                let _ = segment.wait_slot(Side(0), index).sleep();
            }
            ring.arm();
            if !exchange(&mut victim, ring) {
                break;
            }
        }
        release(segment);
    }

    /// Rings the bells of the server's epoll set, without a pause.
    fn bell_flood(&mut self) {
        let mut victim = self.meet();
        let Ok(segment) = victim.share_own_segment() else {
            return;
        };
        let bells = bells_of(&segment);
        let ringer = Ringer::new();
        ringer.open(FLOOR).expect("a descriptor");
        let begin = Instant::now();
        while self.goes_on(begin) {
            for _ in 0..64 {
                for bell in &bells {
                    let _ = ringer.ring(*bell);
                }
            }
            victim.chat(1);
        }
        kernel::close(ringer.fd());
        release(segment);
    }

    /// Makes the server offer, and connects to the offer with an invalid message.
    fn offers(&mut self) {
        let mut victim = self.meet();
        if let Some(visit) = victim.visit() {
            let _ = kernel::sendto(visit, b"nothing", libc::MSG_NOSIGNAL, &[]);
            victim.chat(4);
            kernel::close(visit);
        }
    }

    /// Sends a segment for each of many connections.
    fn segments(&mut self) {
        let mut victim = self.meet();
        if let Ok(segment) = victim.share_own_segment() {
            self.open.push((victim, segment));
        }
        if self.open.len() > CROWD {
            for (_, segment) in self.open.drain(..) {
                release(segment);
            }
        }
    }

    /// Ends the ring that the server writes, without ever acknowledging the switch to it.
    fn no_acknowledgement(&mut self) {
        let mut victim = self.meet();
        let Ok(segment) = victim.share_own_segment() else {
            return;
        };
        let slot = segment.slot(SlotIndex::FIRST);
        slot.sides[0].receiving.store(1, Ordering::SeqCst);
        slot.rings[1].set_ready();
        let (ring, begin) = (&slot.rings[1], Instant::now());
        while ring.switched().is_none() && self.goes_on(begin) {
            victim.chat(1);
        }
        for _ in 0..4 {
            exchange(&mut victim, ring);
        }
        ring.freeze();
        while self.goes_on(begin) && exchange(&mut victim, ring) {}
        release(segment);
    }
}

/// Sends one message to the server, and reads its answer from the ring if there is one within a
/// millisecond; false if the server has ended the connection.
fn exchange(victim: &mut Victim, ring: &Ring) -> bool {
    victim.stream.set_nonblocking(true).expect("an option");
    let served = victim.is_served();
    let begin = Instant::now();
    while !ring.readable() && begin.elapsed() < Duration::from_millis(1) {
        thread::yield_now();
    }
    drain(ring);
    served
}

/// The names of the server's bells in a segment that we made.
fn bells_of(segment: &Segment) -> Vec<u64> {
    let all = (0..WAIT_SLOTS).map(|index| segment.wait_slot(Side(1), index).bell());
    all.filter(|bell| *bell != 0).collect()
}

fn release(segment: Segment) {
    // SAFETY: every reference into the segment has ended with its round.
    unsafe { segment.release() };
}
