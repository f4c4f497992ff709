//! The ring against a queue, its growth, and what it leaves to others.

use super::*;

const KIB: u32 = 1 << 10;

/// A pool of rings of at most `capacity` bytes, with a budget of `limit` bytes.
fn limited(capacity: u32, limit: u32) -> Pool {
    let budget = Budget::new(u64::from(limit), capacity);
    Pool::new(capacity, budget, Mailbox::new(|| {}))
}

fn pool(capacity: u32) -> Pool {
    limited(capacity, 1 << 30)
}

/// Places bytes as the table does.
fn place(buffer: &mut Buffer, at: u32, bytes: &[u8], pool: &mut Pool) {
    buffer.reserve(at + u32::try_from(bytes.len()).unwrap(), pool);
    buffer.place(at, bytes);
}

/// The ring against a queue, with random pieces.
#[test]
fn bytes_come_out_as_they_went_in() {
    for capacity in [1000, 100 * KIB] {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut buffer, mut pool) = (Buffer::default(), pool(capacity));
        let mut model = std::collections::VecDeque::new();
        let mut next = 0_u8;
        for step in 0..20_000 {
            if random.bool() {
                let room = buffer.room(&mut pool);
                let count = random.usize(..=room.len().min(3000));
                for byte in &mut room[..count] {
                    *byte = next;
                    model.push_back(next);
                    next = next.wrapping_add(1);
                }
                buffer.extend(u32::try_from(count).unwrap());
            } else {
                let count = random.usize(..=buffer.front().len().min(3000));
                let out: Vec<u8> = model.drain(..count).collect();
                assert_eq!(buffer.front()[..count], out, "step {step}");
                buffer.consume(u32::try_from(count).unwrap(), &mut pool);
            }
            if step % 100 == 0 {
                let mut all = vec![0; model.len()];
                buffer.copy(0, &mut all);
                assert_eq!(all, model.make_contiguous(), "step {step}");
            }
            assert_eq!(buffer.length as usize, model.len());
            assert_eq!(pool.budget.used(), u64::from(buffer.size()), "step {step}");
        }
    }
}

#[test]
fn bytes_that_come_early_wait_for_those_before_them() {
    let (mut buffer, mut pool) = (Buffer::default(), pool(10));
    place(&mut buffer, 0, b"abcdef", &mut pool);
    buffer.extend(6);
    buffer.consume(6, &mut pool);
    assert_eq!(buffer.size(), 0, "an empty ring has no memory");
    place(&mut buffer, 3, b"ghij", &mut pool);
    assert!(buffer.is_empty());
    place(&mut buffer, 0, b"def", &mut pool);
    buffer.extend(7);
    assert_eq!(buffer.front(), b"defghij");
    buffer.consume(4, &mut pool);
    // Around the end of the memory, and before the rest.
    place(&mut buffer, 5, b"56789", &mut pool);
    place(&mut buffer, 3, b"34", &mut pool);
    buffer.extend(7);
    let mut all = [0; 10];
    buffer.copy(0, &mut all);
    assert_eq!(&all, b"hij3456789");
}

#[test]
fn early_bytes_survive_the_end_of_those_before_them() {
    let (mut buffer, mut pool) = (Buffer::default(), pool(10));
    place(&mut buffer, 0, b"ab", &mut pool);
    place(&mut buffer, 4, b"ef", &mut pool);
    buffer.extend(2);
    buffer.consume(2, &mut pool);
    place(&mut buffer, 0, b"cd", &mut pool);
    buffer.extend(4);
    assert_eq!(buffer.front(), b"cdef");
}

/// Bytes around the end of the memory, and early ones behind them, move along.
#[test]
fn a_ring_grows_with_its_bytes() {
    let (mut buffer, mut pool) = (Buffer::default(), pool(256 * KIB));
    place(&mut buffer, 0, &[1; 16 << 10], &mut pool);
    buffer.extend(16 * KIB);
    assert_eq!(buffer.size(), 16 * KIB);
    buffer.consume(10 * KIB, &mut pool);
    place(&mut buffer, 6 * KIB, &[2; 5 << 10], &mut pool);
    buffer.extend(5 * KIB);
    place(&mut buffer, 20 * KIB, b"early", &mut pool);
    assert_eq!(buffer.size(), 64 * KIB);
    place(&mut buffer, 11 * KIB, &[3; 9 << 10], &mut pool);
    buffer.extend(9 * KIB + 5);
    let expected = [
        vec![1; 6 << 10],
        vec![2; 5 << 10],
        vec![3; 9 << 10],
        b"early".to_vec(),
    ];
    assert!(buffer.front() == expected.concat(), "other bytes");
    assert_eq!(pool.budget.used(), 64 << 10);
}

#[test]
fn the_next_memory_is_as_large_as_was_needed() {
    let (mut buffer, mut pool) = (Buffer::default(), pool(1024 * KIB));
    let mut sizes = Vec::new();
    for bytes in [100, 200 * KIB, 100, 100, 100] {
        place(&mut buffer, 0, &vec![0; bytes as usize], &mut pool);
        sizes.push(buffer.size() / KIB);
        buffer.extend(bytes);
        buffer.consume(bytes, &mut pool);
    }
    assert_eq!(sizes, [16, 256, 256, 64, 16]);
}

#[test]
fn a_ring_that_may_not_grow_stays_as_it_is() {
    let mut pool = limited(256 * KIB, 64 * KIB);
    let (mut one, mut other) = (Buffer::default(), Buffer::default());
    assert_eq!(one.reserve(1, &mut pool), 16 * KIB);
    assert_eq!(one.reserve(17 * KIB, &mut pool), 16 * KIB);
    assert_eq!(other.reserve(60 * KIB, &mut pool), 16 * KIB, "the smallest");
    one.give_back(&mut pool);
    other.give_back(&mut pool);
    assert_eq!(pool.budget.used(), 0);
    assert_eq!(other.reserve(60 * KIB, &mut pool), 64 * KIB);
    assert_eq!(one.room(&mut pool).len(), 0, "the other one has all");
    pool.wait(7);
    other.give_back(&mut pool);
    assert_eq!(pool.granted(), 1);
    assert_eq!(pool.next_waiting(), Some(7));
    one.grant(&mut pool);
    assert_eq!(one.room(&mut pool).len(), 16 << 10);
    one.give_back(&mut pool);
    assert_eq!(pool.budget.used(), 0);
}

#[test]
#[should_panic(expected = "beyond the ring")]
fn bytes_that_were_not_reserved_are_a_fault_of_the_stack() {
    let (mut buffer, mut pool) = (Buffer::default(), pool(10));
    buffer.reserve(1, &mut pool);
    buffer.place(5, b"123456");
}
