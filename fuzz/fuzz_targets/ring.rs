//! A ring whose words a hostile peer rewrites, between calls and in the middle of them.
//!
//! Each step of the input first makes words of the ring anything, then calls one operation.
//! The storage rewrites more words whenever the ring touches it. No operation may panic, loop
//! for ever, or leave the storage.

#![no_main]

use libfuzzer_sys::fuzz_target;
use saiga_channel::ring::{Got, LARGEST_SHIFT, Put, Ring, Storage};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

const MAX_SHIFT: u32 = 12;
const WORDS: usize = size_of::<Ring>() / 8;
/// Where the words are that the ring computes with: head, geometry, total, flags; tail, flags.
const MEANT: [usize; 8] = [0, 1, 2, 3, 16, 17, 18, 0];

#[repr(C, align(128))]
struct Shared([AtomicU64; WORDS]);

impl Shared {
    fn ring(&self) -> &Ring {
        // SAFETY: a ring is words of this size and alignment, and any values are valid in it.
        unsafe { &*(&raw const *self).cast() }
    }
}

/// The input, read from its front; zeros behind its end.
struct Input<'a>(RefCell<&'a [u8]>);

impl Input<'_> {
    fn byte(&self) -> u8 {
        let mut rest = self.0.borrow_mut();
        let Some((first, behind)) = rest.split_first() else {
            return 0;
        };
        *rest = behind;
        *first
    }

    fn word(&self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    fn is_over(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

struct World<'a> {
    shared: &'a Shared,
    input: Input<'a>,
    bytes: RefCell<Vec<u8>>,
    /// Rewrites left inside the operation under way: a peer is not infinitely fast.
    inside: Cell<u32>,
}

impl World<'_> {
    /// Makes one word anything: mostly near what it was, or like what it should be.
    fn scribble(&self) {
        let word = &self.shared.0[MEANT[usize::from(self.input.byte() % 8)]];
        let now = word.load(Ordering::Relaxed);
        let value = match self.input.byte() % 6 {
            0 => now.wrapping_add(u64::from(self.input.byte())),
            1 => now.wrapping_sub(u64::from(self.input.byte())),
            2 => now ^ (1 << (self.input.byte() % 64)),
            3 => u64::from(self.input.byte() % 24) << 56 | u64::from(self.input.byte()),
            4 => self.shared.0[0].load(Ordering::Relaxed),
            _ => self.input.word(),
        };
        word.store(value, Ordering::Relaxed);
    }

    fn scribble_inside(&self) {
        if self.inside.get() > 0 {
            self.inside.set(self.inside.get() - 1);
            self.scribble();
        }
    }

    fn operate(&self) {
        let ring = self.shared.ring();
        let lengths = [self.input.byte(), self.input.byte()].map(|n| usize::from(n) * 17);
        match self.input.byte() % 12 {
            0..3 => self.write(ring, lengths),
            3..6 => self.read(ring, lengths),
            6 => drop(ring.skip(ring.tail(), lengths[0] as u64)),
            7 => {
                let pending = ring.pending(MAX_SHIFT).unwrap_or(0);
                assert!(pending <= 1 << MAX_SHIFT);
                assert!(ring.room(MAX_SHIFT) <= 1 << LARGEST_SHIFT);
            }
            8 => drop(ring.sleep(MAX_SHIFT)),
            9 => {
                ring.arm();
                ring.arm_space(MAX_SHIFT);
            }
            10 => {
                ring.writable(MAX_SHIFT);
                ring.readable();
                ring.switched();
            }
            _ => ring.freeze(),
        }
    }

    fn write(&self, ring: &Ring, lengths: [usize; 2]) {
        let parts = lengths.map(|n| vec![7u8; n]);
        let parts = [&parts[0][..], &parts[1][..]];
        let grow = |shift| {
            assert!(shift <= MAX_SHIFT, "grows beyond its storage");
            self.scribble_inside();
            self.input.byte() % 4 > 0
        };
        if let Put::Bytes { n, .. } = ring.write(self, &parts, grow) {
            assert!(n <= lengths.iter().sum());
        }
    }

    fn read(&self, ring: &Ring, lengths: [usize; 2]) {
        let mut parts = lengths.map(|n| vec![0u8; n]);
        let [a, b] = &mut parts;
        let (kind, parts) = (self.input.byte(), &mut [&mut a[..], &mut b[..]]);
        let peek = kind % 2 > 0;
        let got = if kind % 4 < 2 {
            ring.read(self, parts, peek)
        } else {
            ring.read_recalled(self, parts, peek)
        };
        if let Got::Bytes { n, .. } = got {
            assert!(n <= lengths.iter().sum());
        }
    }
}

impl Storage for World<'_> {
    fn max_shift(&self) -> u32 {
        MAX_SHIFT
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        self.bytes.borrow_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.scribble_inside();
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes.borrow()[offset..offset + bytes.len()]);
        self.scribble_inside();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let shared = Shared([const { AtomicU64::new(0) }; WORDS]);
    shared.ring().reset(u32::from(bytes.len() as u8 % 13));
    let world = World {
        shared: &shared,
        input: Input(RefCell::new(bytes)),
        bytes: RefCell::new(vec![0; 1 << MAX_SHIFT]),
        inside: Cell::new(0),
    };
    while !world.input.is_over() {
        for _ in 0..world.input.byte() % 4 {
            world.scribble();
        }
        world.inside.set(u32::from(world.input.byte() % 4));
        world.operate();
    }
});
