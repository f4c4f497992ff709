//! Both ends of a ring over the same memory, which is mapped twice, as by the kernel and a process.

use std::os::fd::AsFd as _;
use std::thread;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

const BYTES: usize = 4096;

fn layout(count: u32) -> Layout {
    Layout {
        producer: 0,
        consumer: 64,
        flags: 128,
        slots: 192,
        count,
    }
}

/// Both ends of a ring that has passed `past` slots.
fn pair<const W: usize>(count: u32, past: u32) -> (Producer<W>, Consumer<W>) {
    let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, BYTES as u64).unwrap();
    let [first, second] = [(); 2].map(|()| Mapping::of(file.as_fd(), BYTES, 0).unwrap());
    let layout = layout(count);
    for part in [layout.producer, layout.consumer] {
        first.word(part).unwrap().store(past, Relaxed);
    }
    let producer = Producer::new(first, layout).unwrap();
    (producer, Consumer::new(second, layout).unwrap())
}

fn kernel_word(consumer: &Consumer<1>, part: usize) -> &AtomicU32 {
    consumer.ring.memory.word(part).unwrap()
}

/// Starts at 0, and where the counts pass 2^32.
#[test]
fn slots_pass_in_order_and_are_used_again() {
    for past in [0, u32::MAX - 2] {
        let (mut producer, mut consumer) = pair::<2>(4, past);
        for round in 0..5 {
            let value = |index| [10 * round + index, index];
            assert_eq!(producer.free(4), 4);
            for index in 0..4 {
                assert!(producer.push(value(index)));
            }
            assert!(!producer.push([0, 0]), "the ring is full");
            assert_eq!(consumer.available(), 0, "nothing was published");
            producer.publish();
            assert_eq!((consumer.available(), producer.used()), (4, 4));
            for index in 0..3 {
                assert_eq!(consumer.pop(), value(index));
            }
            assert_eq!(producer.free(4), 0, "nothing was released");
            consumer.release();
            assert_eq!(producer.free(4), 3);
            assert_eq!(consumer.pop(), value(3));
            consumer.release();
        }
    }
}

/// The producer fills a slot only when it was released, on two CPUs.
#[test]
fn two_threads_pass_every_slot_once() {
    const SLOTS: u64 = 200_000;
    let (mut producer, mut consumer) = pair::<2>(8, u32::MAX - 1000);
    let filling = thread::spawn(move || {
        for number in 0..SLOTS {
            while !producer.push([number, !number]) {
                thread::yield_now();
            }
            producer.publish();
        }
    });
    let mut next = 0;
    while next < SLOTS {
        for _ in 0..consumer.available() {
            assert_eq!(consumer.pop(), [next, !next]);
            next += 1;
        }
        consumer.release();
        thread::yield_now();
    }
    filling.join().unwrap();
    assert_eq!(consumer.available(), 0);
}

#[test]
fn counts_that_make_no_sense_stop_the_ring() {
    let (mut producer, consumer) = pair::<1>(4, 7);
    kernel_word(&consumer, layout(4).producer).store(12, Relaxed);
    assert_eq!(consumer.available(), 0, "five slots of four are filled");
    kernel_word(&consumer, layout(4).producer).store(6, Relaxed);
    assert_eq!(consumer.available(), 0, "the producer is behind");
    kernel_word(&consumer, layout(4).consumer).store(8, Relaxed);
    assert_eq!(producer.used(), 4, "the consumer is ahead");
    assert!(!producer.push([1]));
}

#[test]
fn the_flag_asks_for_a_call() {
    let (producer, consumer) = pair::<1>(4, 0);
    assert!(!producer.needs_wakeup());
    kernel_word(&consumer, layout(4).flags).store(NEEDS_WAKEUP, Relaxed);
    assert!(producer.needs_wakeup());
}

#[test]
fn a_ring_beyond_its_memory_is_refused() {
    let memory = || Mapping::anonymous(BYTES).unwrap();
    let valid = Layout {
        slots: BYTES - 64,
        ..layout(8)
    };
    assert!(Producer::<1>::new(memory(), valid).is_some());
    assert!(Producer::<2>::new(memory(), valid).is_none());
    for wrong in [
        Layout { count: 16, ..valid },
        Layout { count: 3, ..valid },
        Layout { count: 0, ..valid },
        Layout { slots: 4, ..valid },
        Layout {
            flags: BYTES,
            ..valid
        },
        Layout {
            producer: 2,
            ..valid
        },
        Layout {
            consumer: usize::MAX,
            ..valid
        },
    ] {
        assert!(Consumer::<1>::new(memory(), wrong).is_none(), "{wrong:?}");
    }
}
