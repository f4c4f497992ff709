//! Sleeping and being woken.

use std::thread;

use saiga_netdev::Device as _;
use saiga_netdev::memif::Memif;
use saiga_wire::virtio::Header;

use crate::raw::{RINGS, Raw, Shared, buffer};
use crate::world::{World, frame, is_readable, received, send, sleep, step, wait};

/// Rounds between two threads, each of which sleeps until the other's frame comes.
const ROUNDS: usize = 20_000;

/// A lost wake-up ends in the time limit of the wait. Polls before some of the waits, so that
/// frames come at any moment of the way to sleep.
#[test]
fn no_wake_up_is_lost() {
    let world = World::new();
    let [near, far] = world.pair(64);
    let echo = thread::spawn(move || play(far, false));
    play(near, true);
    echo.join().unwrap();
}

fn play(mut device: Memif, begins: bool) {
    let mut random = fastrand::Rng::with_seed(u64::from(begins));
    for round in 0..ROUNDS {
        if begins || round > 0 {
            assert!(send(&mut device, &frame(60, round), &Header::NONE));
            device.flush().unwrap();
        }
        let mut polls = random.u16(..400);
        let mut taken = 0;
        while taken == 0 {
            match polls.checked_sub(1) {
                Some(left) => polls = left,
                None => wait(&mut device),
            }
            taken = device.receive(64, &mut |_| {}).unwrap();
        }
        assert_eq!(taken, 1);
    }
    if !begins {
        assert!(send(&mut device, &frame(60, 0), &Header::NONE));
        device.flush().unwrap();
        // The other end reads it before it sees this end close.
        wait(&mut device);
    }
}

/// An end that polls gets no interrupts, and one that waits gets one for each flush.
#[test]
fn the_descriptor_tells_of_frames_only_while_the_owner_waits() {
    let world = World::new();
    let [mut near, mut far] = world.pair(64);
    assert!(send(&mut near, &frame(60, 0), &Header::NONE));
    near.flush().unwrap();
    assert_eq!(received(&mut far).len(), 1);
    assert!(
        is_readable(&far),
        "the first frame came before the owner polled"
    );
    // An owner that polls looks at other news now and then, which takes the old one away.
    (0..256).for_each(|_| assert!(received(&mut far).is_empty()));
    assert!(!is_readable(&far));
    assert!(send(&mut near, &frame(60, 1), &Header::NONE));
    near.flush().unwrap();
    assert!(!is_readable(&far), "the owner polls");
    assert!(far.before_wait().unwrap(), "a frame waits");
    assert_eq!(received(&mut far).len(), 1);
    assert!(!far.before_wait().unwrap());
    assert!(send(&mut near, &frame(60, 2), &Header::NONE));
    assert!(!is_readable(&far), "nothing was flushed");
    near.flush().unwrap();
    assert!(is_readable(&far));
    assert_eq!(received(&mut far).len(), 1);
    step(&mut far);
    assert!(!is_readable(&far));
}

/// A foreign peer may read the flag before its frames are visible, and write no eventfd then.
#[test]
fn frames_of_a_foreign_peer_are_found_without_its_eventfd() {
    let world = World::new();
    let mut server = world.server(64);
    let shared = Shared::new();
    let _peer = Raw::up(&world, &mut server, &shared);
    let is_masked = || u16::from_ne_bytes(shared.get(RINGS[0] + 4)) == 1;
    assert!(received(&mut server).is_empty());
    assert!(
        !is_masked(),
        "the device has found nothing and looks no more"
    );
    for head in 1..=2 {
        shared.describe(0, head - 1, [0, 0], 60, buffer(0, head - 1));
    }
    shared.publish(0, 1);
    assert_eq!(received(&mut server).len(), 1);
    assert!(is_masked(), "the device polls");
    assert!(!server.before_wait().unwrap());
    assert!(!is_masked());
    shared.publish(0, 2);
    sleep(&[&server]);
    assert!(server.before_wait().unwrap(), "a frame waits");
    assert_eq!(received(&mut server).len(), 1);
}
