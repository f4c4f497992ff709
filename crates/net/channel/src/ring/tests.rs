//! Tests of rings: literal expectations, and a model that is a byte queue.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other outcome fails the assertion"
)]

use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;

struct Bytes(RefCell<Vec<u8>>);

impl Storage for Bytes {
    fn max_shift(&self) -> u32 {
        self.0.borrow().len().trailing_zeros()
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        self.0.borrow_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.borrow()[offset..offset + bytes.len()]);
    }
}

fn storage(max: usize) -> Bytes {
    Bytes(RefCell::new(vec![0; max]))
}

fn ring(shift: u32) -> Ring {
    // All-zero words are a valid ring; `reset` sets its size.
    let ring = Ring {
        producer: ProducerLine {
            head: AtomicU64::new(0),
            geometry: AtomicU64::new(0),
            tcp_total: AtomicU64::new(0),
            switched: AtomicU32::new(0),
            want_space: AtomicU32::new(0),
        },
        consumer: ConsumerLine {
            tail: AtomicU64::new(0),
            armed: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
            recalled: AtomicU32::new(0),
        },
    };
    ring.reset(shift);
    ring
}

#[test]
fn a_message_of_a_quarter_goes_whole_or_not_at_all() {
    let (r, s) = (ring(5), storage(32));
    let put = |len: usize| r.write(&s, [vec![7; len]], |_| false);
    assert!(matches!(put(17), Put::Bytes { n: 17, .. }));
    assert!(matches!(put(8), Put::Bytes { n: 8, .. }));
    for len in [1, 8, 20] {
        assert_eq!(
            put(len),
            Put::Full,
            "7 of 32 bytes are free, less than a quarter"
        );
    }
    assert!(
        !r.writable(5) && r.room(5) == 0,
        "room and writable agree that nothing fits"
    );
}

#[test]
fn a_full_ring_returns_full() {
    let (r, s) = (ring(3), storage(8));
    assert_eq!(
        r.write(&s, &[b"abcdef"], |_| false),
        Put::Bytes { n: 6, notify: true }
    );
    assert_eq!(
        r.write(&s, &[b"ghij"], |_| false),
        Put::Bytes {
            n: 2,
            notify: false
        }
    );
    assert_eq!(r.write(&s, &[b"x"], |_| false), Put::Full);
    let (mut a, mut b) = ([0; 3], [0; 9]);
    assert_eq!(
        r.read(&s, &mut [&mut a, &mut b], false),
        Got::Bytes {
            n: 8,
            notify: false
        }
    );
    assert_eq!((&a, &b[..5]), (b"abc", &b"defgh"[..]));
    assert_eq!(r.read(&s, &mut [&mut a], false), Got::Empty);
}

#[test]
fn small_messages_use_only_the_first_bytes() {
    let (r, s) = (ring(4), storage(16));
    for i in 0..100u8 {
        assert!(matches!(
            r.write(&s, &[&[i; 3]], |_| false),
            Put::Bytes { n: 3, .. }
        ));
        let mut out = [0; 16];
        assert!(matches!(
            r.read(&s, &mut [&mut out], false),
            Got::Bytes { n: 3, .. }
        ));
        assert_eq!(out[..3], [i; 3]);
    }
    assert_eq!(
        s.0.borrow()[3..],
        [0; 13],
        "bytes past the first message were touched"
    );
}

#[test]
fn an_empty_ring_grows_for_a_large_message_and_sleeps_when_it_is_empty_again() {
    let (r, s) = (ring(3), storage(64));
    let grown = std::cell::Cell::new(0);
    let put = r.write(&s, &[&[7; 40]], |shift| {
        grown.set(shift);
        true
    });
    assert_eq!(
        (put, grown.get()),
        (
            Put::Bytes {
                n: 40,
                notify: true
            },
            6
        )
    );
    assert!(!r.sleep(6), "bytes are still inside");
    let mut out = [0; 64];
    assert_eq!(
        r.read(&s, &mut [&mut out], false),
        Got::Bytes {
            n: 40,
            notify: false
        }
    );
    assert_eq!(r.head_while_awake(6), Some(40));
    assert!(r.sleep(6));
    assert_eq!(r.head_while_awake(6), None, "it is asleep already");
    assert!(!r.sleep(6), "its memory is released only once");
}

#[test]
fn a_ring_asleep_is_empty_and_gets_its_first_capacity_with_the_next_byte() {
    let (r, s) = (ring(3), storage(1 << 15));
    assert!(r.sleep(15));
    assert_eq!(r.read(&s, &mut [&mut [0; 8]], false), Got::Empty);
    assert!(!r.readable() && !r.arm() && r.pending(15) == Some(0));
    assert!(r.writable(15) && r.arm_space(15));
    assert_eq!((r.room(15), r.room(2)), (1 << START_SHIFT, 4));
    let put = r.write(&s, &[b"x"], |shift| shift == START_SHIFT);
    assert_eq!(put, Put::Bytes { n: 1, notify: true });
    assert_eq!(r.room(15), (1 << 15) - 1);
    let mut out = [0; 8];
    assert!(matches!(
        r.read(&s, &mut [&mut out], false),
        Got::Bytes { n: 1, .. }
    ));
    assert_eq!(out[0], b'x');
    assert!(r.sleep(15));
    let put = r.write(&s, &[&[5; 9000]], |shift| shift == 14);
    assert!(matches!(put, Put::Bytes { n: 9000, .. }));
}

#[test]
fn a_ring_asleep_that_gets_no_memory_returns_no_memory() {
    let (r, s) = (ring(3), storage(8));
    assert!(r.sleep(3));
    assert_eq!(r.write(&s, &[b"abc"], |_| false), Put::NoMemory);
    assert_eq!(r.write(&s, &[b""], |_| false), Put::Full);
    assert_eq!((r.pending(3), r.head_while_awake(3)), (Some(0), None));
    r.freeze();
    assert_eq!(r.write(&s, &[b"abc"], |_| true), Put::Frozen);
    assert_eq!(r.read(&s, &mut [&mut [0; 8]], false), Got::Ended);
}

#[test]
fn a_ring_put_to_sleep_by_the_peer_while_it_holds_bytes_is_corrupt() {
    let (r, s) = (ring(3), storage(8));
    r.write(&s, &[b"abc"], |_| false);
    r.producer.geometry.store(0, Ordering::Relaxed);
    assert_eq!(r.read(&s, &mut [&mut [0; 8]], false), Got::Corrupt);
    assert_eq!(r.write(&s, &[b"d"], |_| true), Put::Corrupt);
    assert!(!r.sleep(3));
}

#[test]
fn freezing_ends_the_ring_at_an_exact_byte() {
    let (r, s) = (ring(3), storage(8));
    r.write(&s, &[b"abc"], |_| false);
    r.freeze();
    assert_eq!(r.write(&s, &[b"d"], |_| false), Put::Frozen);
    assert!(r.arm() && r.frozen());
    let mut out = [0; 8];
    assert_eq!(
        r.read(&s, &mut [&mut out], true),
        Got::Bytes {
            n: 3,
            notify: false
        }
    );
    assert_eq!(
        r.read(&s, &mut [&mut out], false),
        Got::Bytes {
            n: 3,
            notify: false
        }
    );
    assert_eq!(r.read(&s, &mut [&mut out], false), Got::Ended);
}

#[test]
fn the_producer_is_woken_when_a_quarter_is_free() {
    let (r, s) = (ring(3), storage(8));
    r.write(&s, &[b"abcdefgh"], |_| false);
    assert!(!r.arm_space(3));
    let mut one = [0; 1];
    assert_eq!(
        r.read(&s, &mut [&mut one], false),
        Got::Bytes {
            n: 1,
            notify: false
        }
    );
    assert_eq!(
        r.read(&s, &mut [&mut one], false),
        Got::Bytes { n: 1, notify: true }
    );
    assert_eq!(
        r.read(&s, &mut [&mut one], false),
        Got::Bytes {
            n: 1,
            notify: false
        }
    );
}

#[test]
fn false_words_are_reported_as_corrupt() {
    let (s, poison) = (storage(8), [u64::MAX >> 1, 9, 1 << 60, u64::MAX]);
    for value in poison {
        let r = ring(3);
        r.producer.head.store(value & !FROZEN, Ordering::Relaxed);
        assert_eq!(
            r.read(&s, &mut [&mut [0; 8]], false),
            Got::Corrupt,
            "head {value:#x}"
        );
        let r = ring(3);
        r.consumer.tail.store(value, Ordering::Relaxed);
        assert_eq!(
            r.write(&s, &[b"x"], |_| false),
            Put::Corrupt,
            "tail {value:#x}"
        );
        let r = ring(3);
        r.producer
            .geometry
            .store(value | (200 << SHIFT_AT), Ordering::Relaxed);
        assert_eq!(
            r.write(&s, &[b"x"], |_| true),
            Put::Corrupt,
            "geometry {value:#x}"
        );
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write(Vec<u8>),
    Read(usize),
    Peek(usize),
    Skip(usize),
    Sleep,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(Op::Write),
        (1usize..40).prop_map(Op::Read),
        (1usize..40).prop_map(Op::Peek),
        (1usize..10).prop_map(Op::Skip),
        Just(Op::Sleep),
    ]
}

proptest! {
    /// A ring behaves as a bounded byte queue for any sizes in any order.
    #[test]
    fn a_ring_is_a_byte_queue(ops in proptest::collection::vec(op(), 1..200)) {
        let (r, s) = (ring(3), storage(32));
        let mut model = VecDeque::new();
        for op in ops {
            match op {
                Op::Write(bytes) => match r.write(&s, &[&bytes[..1], &bytes[1..]], |_| true) {
                    Put::Bytes { n, .. } => model.extend(&bytes[..n]),
                    full => {
                        prop_assert_eq!(full, Put::Full);
                        let free = 32 - model.len();
                        prop_assert!(free < 8);
                    }
                },
                Op::Read(n) | Op::Peek(n) => {
                    let peek = matches!(op, Op::Peek(_));
                    let mut out = vec![0; n];
                    let (left, right) = out.split_at_mut(n / 2);
                    let got = match r.read(&s, &mut [left, right], peek) {
                        Got::Bytes { n, .. } => n,
                        empty => { prop_assert_eq!(empty, Got::Empty); 0 }
                    };
                    prop_assert_eq!(got, n.min(model.len()));
                    let expected: Vec<u8> = model.iter().take(got).copied().collect();
                    prop_assert_eq!(&out[..got], &expected[..]);
                    if !peek { model.drain(..got); }
                }
                Op::Skip(n) => {
                    let n = n.min(model.len());
                    prop_assert!(r.skip(r.tail(), n as u64));
                    model.drain(..n);
                }
                Op::Sleep => if r.sleep(5) {
                    prop_assert!(model.is_empty());
                    s.0.borrow_mut().fill(0xdd);
                },
            }
            prop_assert_eq!(r.pending(5), Some(model.len() as u64));
        }
    }
}

/// Reads of any size, at every third turn: the writer is stopped only by the limit.
#[test]
fn a_writer_is_stopped_by_the_limit_and_not_by_the_offsets_of_its_bytes() {
    for size in 1..=7 {
        let (r, s) = (ring(3), storage(64));
        let (mut written, mut read, mut out) = (0, 0, [0; 64]);
        let put = |bytes: &[u8]| match r.write(&s, &[bytes], |_| true) {
            Put::Bytes { n, .. } => n,
            full => {
                assert_eq!(full, Put::Full);
                0
            }
        };
        let text: Vec<u8> = (0..255).collect();
        for turn in 0..6 {
            written += put(&text[written..][..size]);
            let room = if turn % 3 == 2 { size } else { 0 };
            match r.read(&s, &mut [&mut out[..room]], false) {
                Got::Bytes { n, .. } => read += n,
                empty => assert_eq!(empty, Got::Empty),
            }
        }
        while r.writable(6) {
            let n = put(&text[written..][..size]);
            assert_eq!(n, size, "stopped at {} bytes", written - read);
            written += n;
        }
        assert_eq!(put(&text[..size]), 0);
        assert!(written - read > 48, "a quarter is free");
        assert!(matches!(
            r.read(&s, &mut [&mut out], false),
            Got::Bytes { n, .. } if n == written - read
        ));
        assert_eq!(out[..written - read], text[read..written]);
    }
}

/// A storage whose ring may not grow further at present.
struct Limited(Bytes, u32);

impl Storage for Limited {
    fn max_shift(&self) -> u32 {
        self.0.max_shift()
    }
    fn limit(&self) -> u32 {
        self.1
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        self.0.put(offset, bytes);
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        self.0.take(offset, bytes);
    }
}

#[test]
fn a_ring_beyond_its_limit_stays_in_use_and_does_not_grow() {
    let (r, large, small) = (ring(3), storage(64), Limited(storage(64), 4));
    let bytes = |n, notify| Put::Bytes { n, notify };
    assert_eq!(r.write(&small, &[&[1; 20]], |_| true), bytes(16, true));
    assert_eq!(r.write(&small, &[&[2]], |_| true), Put::Full);
    assert!(!r.writable(4) && r.writable(6));
    assert_eq!((r.room(4), r.room(6)), (0, 48));
    assert_eq!(r.write(&large, &[&[3; 10]], |_| true), bytes(10, false));
    assert_eq!(r.room(4), 0, "6 of 32 bytes are free, less than a quarter");
    assert_eq!(r.write(&small, &[&[4; 10]], |_| true), Put::Full);
    assert_eq!(r.write(&large, &[&[5; 10]], |_| true), bytes(10, false));
    assert_eq!(r.pending(6), Some(36));
}

#[test]
fn a_large_message_is_published_in_parts_and_needs_no_memory_for_bytes_already_read() {
    let (r, s) = (ring(START_SHIFT), storage(1 << LARGEST_SHIFT));
    let (message, mut out) = (vec![7; 1 << 20], vec![0; 1 << 20]);
    let part = usize::try_from(AT_ONCE).expect("a size");
    for _ in 0..4 {
        let put = r.write(&s, &[&message], |shift| shift == 18);
        assert!(matches!(put, Put::Bytes { n, .. } if n == part), "{put:?}");
        let got = r.read(&s, &mut [&mut out], false);
        assert!(matches!(got, Got::Bytes { n, .. } if n == part), "{got:?}");
    }
    for unread in 1..=13 {
        let put = r.write(&s, &[&message], |_| true);
        assert!(matches!(put, Put::Bytes { n, .. } if n == part), "{unread}");
    }
    let put = r.write(&s, &[&message], |_| true);
    assert_eq!(put, Put::Full, "less than a quarter of 4 MiB is free");
}

#[test]
fn a_ring_that_gets_no_more_memory_is_used_until_it_is_full() {
    let (r, s) = (ring(3), storage(64));
    let put = |text: &[u8], memory| r.write(&s, &[text], |_| memory);
    let bytes = |n, notify| Put::Bytes { n, notify };
    assert_eq!(put(b"abcdef", true), bytes(6, true));
    assert_eq!(put(b"ghij", true), bytes(4, false), "8 bytes became 16");
    assert!(r.writable(6) && r.room(6) == 54);
    let mut out = [0; 10];
    let got = |n| Got::Bytes { n, notify: false };
    assert_eq!(r.read(&s, &mut [&mut out[..4]], false), got(4));
    assert_eq!(put(b"klmnop", true), bytes(6, false), "to the end of 16");
    assert_eq!(put(b"qrst", false), bytes(4, false), "around");
    assert!(
        !r.writable(6),
        "full, and it cannot grow: its bytes have wrapped around"
    );
    assert_eq!(put(b"u", true), Put::NoMemory);
    assert_eq!(r.read(&s, &mut [&mut out], false), got(10));
    assert_eq!(&out, b"efghijklmn");
    assert_eq!(r.read(&s, &mut [&mut out], false), got(6));
    assert_eq!(&out[..6], b"opqrst");
    assert_eq!(
        put(&[1; 16], true),
        bytes(16, false),
        "empty: from the start"
    );
    assert_eq!(put(b"v", false), Put::NoMemory);
    assert_eq!(put(b"v", true), bytes(1, false));
}

/// A storage that moves the reader's cursor with every copy, as another reader would.
struct Restless<'a>(&'a Ring, Bytes);

impl Storage for Restless<'_> {
    fn max_shift(&self) -> u32 {
        self.1.max_shift()
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        self.1.put(offset, bytes);
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        self.1.take(offset, bytes);
        self.0.consumer.tail.fetch_xor(1, Ordering::SeqCst);
    }
}

#[test]
fn a_cursor_that_the_peer_keeps_moving_is_corrupt_after_a_bounded_number_of_reads() {
    let ring = ring(4);
    let bytes = Restless(&ring, storage(16));
    let put = ring.write(&bytes, &[b"some"], |_| false);
    assert!(matches!(put, Put::Bytes { n: 4, .. }));
    assert_eq!(ring.read(&bytes, &mut [&mut [0; 4]], false), Got::Corrupt);
}

#[test]
fn a_large_ring_that_has_wrapped_around_waits_for_its_reader_when_it_may_grow_again() {
    let low = Limited(storage(1 << LARGEST_SHIFT), PLENTY_SHIFT);
    let (r, part) = (ring(START_SHIFT), vec![7; 1 << 18]);
    let mut out = vec![0; 1 << 18];
    let put = || r.write(&low, &[&part], |_| true);
    for _ in 0..3 {
        assert!(matches!(put(), Put::Bytes { .. }));
    }
    let got = r.read(&low, &mut [&mut out], false);
    assert!(matches!(got, Got::Bytes { .. }));
    while put() != Put::Full {}
    let high = storage(1 << LARGEST_SHIFT);
    assert_eq!(r.write(&high, &[&part], |_| true), Put::Full);
}

/// A storage whose reader is interrupted once, after its copy, by a signal handler that recalls the
/// ring. The producer then sends `by_tcp`, as many bytes as TCP takes, and drops them.
struct Interrupted<'a> {
    ring: &'a Ring,
    bytes: Bytes,
    by_tcp: RefCell<Vec<u8>>,
}

impl Storage for Interrupted<'_> {
    fn max_shift(&self) -> u32 {
        self.bytes.max_shift()
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        self.bytes.put(offset, bytes);
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        self.bytes.take(offset, bytes);
        if self.ring.recalled() {
            return;
        }
        self.ring.recall();
        let (mut sent, from) = ([0; 4], self.ring.tail());
        let got = self.ring.read_recalled(&self.bytes, &mut [&mut sent], true);
        assert!(matches!(got, Got::Bytes { n: 4, .. }));
        self.by_tcp.borrow_mut().extend(sent);
        assert!(self.ring.skip(from, 4));
    }
}

#[test]
fn a_read_interrupted_by_a_recall_delivers_no_bytes_behind_those_sent_by_tcp() {
    for peek in [false, true] {
        let r = ring(4);
        let s = Interrupted {
            ring: &r,
            bytes: storage(16),
            by_tcp: RefCell::default(),
        };
        let put = r.write(&s, &[b"0123456789"], |_| false);
        assert!(matches!(put, Put::Bytes { n: 10, .. }));
        let mut out = [0; 16];
        assert_eq!(r.read(&s, &mut [&mut out], peek), Got::Ended, "{out:?}");
        assert_eq!(r.read(&s, &mut [&mut out], peek), Got::Ended, "later, too");
        assert_eq!(*s.by_tcp.borrow(), b"0123");
        let rest = r.read_recalled(&s, &mut [&mut out], false);
        assert!(matches!(rest, Got::Bytes { n: 6, .. }) && out.starts_with(b"456789"));
    }
}

#[test]
fn peeked_bytes_are_not_dropped_once_another_reader_has_taken_them() {
    let (r, s) = (ring(3), storage(8));
    r.write(&s, &[b"abcd"], |_| false);
    let (from, mut out) = (r.tail(), [0; 8]);
    assert!(matches!(
        r.read(&s, &mut [&mut out], true),
        Got::Bytes { n: 4, .. }
    ));
    assert!(matches!(
        r.read(&s, &mut [&mut out[..1]], false),
        Got::Bytes { n: 1, .. }
    ));
    assert!(!r.skip(from, 2));
    assert_eq!(r.pending(3), Some(3));
    assert!(r.skip(r.tail(), 3) && !r.readable());
}
