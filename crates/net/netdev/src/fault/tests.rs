//! Faults between two devices in memory, in time that the tests set.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use saiga_wire::virtio::{ChecksumPlace, Header};

use super::{Chance, Faults, Faulty, Loss, Path, Reordering, Settings};
use crate::device::{Device, Frame};
use crate::memory::Memory;
use crate::memory::tests::{is_readable, pair, received, send};

const ALWAYS: Chance = Chance::per_million(1_000_000);
const NONE: Settings = Settings {
    seed: 1,
    receiving: Faults::NONE,
    sending: Faults::NONE,
};

/// A clock that stands still until it is set, in microseconds.
type Time = Rc<Cell<u64>>;

/// A device with faults, the other end of its link, and its clock.
fn faulty(settings: Settings) -> (Faulty<Memory, impl Fn() -> Duration>, Memory, Time) {
    let [near, far] = pair(1_000);
    let time = Time::default();
    let clock = Rc::clone(&time);
    let clock = move || Duration::from_micros(clock.get());
    (Faulty::new(near, &settings, clock).unwrap(), far, time)
}

fn receiving(path: Path) -> Settings {
    Settings {
        receiving: Faults {
            path,
            ..Faults::NONE
        },
        ..NONE
    }
}

fn sending(path: Path) -> Settings {
    Settings {
        sending: Faults {
            path,
            ..Faults::NONE
        },
        ..NONE
    }
}

/// Sends frames of one byte each.
fn send_bytes(device: &mut dyn Device, bytes: impl IntoIterator<Item = u8>) {
    for byte in bytes {
        assert!(send(device, &[byte]));
    }
    device.flush().unwrap();
}

#[test]
fn without_faults_frames_pass_at_once_and_unchanged() {
    let (mut near, mut far, _time) = faulty(NONE);
    let offload = Header {
        verified: true,
        ..Header::NONE
    };
    far.room().unwrap()[..3].copy_from_slice(b"one");
    far.send(3, &offload);
    far.flush().unwrap();
    let mut found = Vec::new();
    let passed = near.receive(8, &mut |frame| {
        found.push((frame.bytes.to_vec(), frame.offload))
    });
    assert_eq!(passed.unwrap(), 1);
    assert_eq!(found, [(b"one".to_vec(), offload)]);
    send_bytes(&mut near, [1, 2]);
    assert_eq!(received(&mut far), [[1], [2]]);
}

/// Which of 200 frames arrive with this seed.
fn survivors(seed: u64) -> Vec<Vec<u8>> {
    let half = Loss::Random(Chance::per_mille(500));
    let settings = receiving(Path {
        loss: half,
        ..Path::ideal(0)
    });
    let (mut near, mut far, _time) = faulty(Settings { seed, ..settings });
    send_bytes(&mut far, 0..200);
    let found = received(&mut near);
    let totals = near.receiving().path;
    assert_eq!((totals.sent, totals.lost), (200, 200 - found.len() as u64));
    found
}

#[test]
fn a_seed_decides_which_frames_are_lost() {
    let found = survivors(1);
    assert!((60..140).contains(&found.len()), "{}", found.len());
    assert_eq!(survivors(1), found);
    assert_ne!(survivors(2), found);
}

#[test]
fn frames_are_delayed_in_both_directions() {
    let delay = Faults {
        path: Path::ideal(5_000),
        ..Faults::NONE
    };
    let (mut near, mut far, time) = faulty(Settings {
        receiving: delay,
        sending: delay,
        ..NONE
    });
    send_bytes(&mut far, [1]);
    send_bytes(&mut near, [2]);
    for now in [0, 4_999] {
        time.set(now);
        assert!(received(&mut near).is_empty() && received(&mut far).is_empty());
    }
    time.set(5_000);
    assert_eq!(received(&mut near), [[1]]);
    assert_eq!(received(&mut far), [[2]]);
}

#[test]
fn frames_overtake_others() {
    let path = Path {
        reordering: Reordering::Behind {
            chance: Chance::per_mille(300),
            packets: 2,
            most_us: 10_000,
        },
        ..Path::ideal(0)
    };
    let (mut near, mut far, time) = faulty(sending(path));
    send_bytes(&mut near, 0..100);
    time.set(10_000);
    near.flush().unwrap();
    let found = received(&mut far);
    let in_order: Vec<Vec<u8>> = (0..100).map(|byte| vec![byte]).collect();
    assert_ne!(found, in_order);
    let mut sorted = found;
    sorted.sort();
    assert_eq!(sorted, in_order);
    assert!(near.sending().path.reordered > 0);
}

#[test]
fn frames_arrive_twice() {
    let path = Path {
        duplication: ALWAYS,
        ..Path::ideal(0)
    };
    let (mut near, mut far, _time) = faulty(sending(path));
    send_bytes(&mut near, [1, 2]);
    assert_eq!(received(&mut far), [[1], [1], [2], [2]]);
}

/// The example of RFC 1071 §3 behind a field that holds the sum of a pseudo header, 1.
#[test]
fn a_corrupted_frame_has_a_checksum_that_is_wrong() {
    let settings = Settings {
        receiving: Faults {
            corruption: ALWAYS,
            ..Faults::NONE
        },
        ..NONE
    };
    let (mut near, mut far, _time) = faulty(settings);
    let open = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let closed = [0x22, 0x0d, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let checksum = Some(ChecksumPlace {
        start: 0,
        offset: 0,
    });
    far.room().unwrap()[..8].copy_from_slice(&open);
    let offload = Header {
        checksum,
        ..Header::NONE
    };
    far.send(8, &offload);
    far.flush().unwrap();
    let mut found = Vec::new();
    let mut each = |frame: Frame<'_>| found.push((frame.bytes.to_vec(), frame.offload));
    near.receive(8, &mut each).unwrap();
    let [(bytes, offload)] = &found[..] else {
        panic!("{found:?}");
    };
    let flipped = bytes.iter().zip(closed).map(|(a, b)| (a ^ b).count_ones());
    assert_eq!(flipped.sum::<u32>(), 1);
    assert_eq!(*offload, Header::NONE);
    assert_eq!(near.receiving().corrupted, 1);
}

/// Here the clock is that of the machine.
#[test]
fn the_descriptor_becomes_readable_when_a_frame_is_due() {
    let [near, mut far] = pair(8);
    let begin = Instant::now();
    let settings = receiving(Path::ideal(1_000));
    let mut near = Faulty::new(near, &settings, move || begin.elapsed()).unwrap();
    assert!(!is_readable(&near));
    send_bytes(&mut far, [1]);
    assert!(is_readable(&near));
    while received(&mut near).is_empty() {
        let descriptor = near.descriptor();
        // The far end sends nothing more: the timer alone ends the wait.
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).unwrap();
    }
    assert!(!is_readable(&near));
}

#[test]
fn a_frame_longer_than_the_room_is_refused() {
    let (mut near, mut far, _time) = faulty(NONE);
    near.send(crate::LARGEST_FRAME_BYTES + 1, &Header::NONE);
    near.flush().unwrap();
    assert_eq!(near.counters().drops.refused, 1);
    assert!(received(&mut far).is_empty());
}
