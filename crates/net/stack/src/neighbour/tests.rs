//! Neighbours: states, waiting frames, limits.

use super::*;
use alloc::vec;
use core::net::Ipv4Addr;

const KEY: (u8, IpAddr) = (0, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)));
const ONE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const ANSWER: News = News::Answer { overrides: true };

fn at(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000)
}

fn frame(byte: u8) -> Held {
    Held {
        frame: vec![byte; 60],
        offload: virtio::Header::NONE,
    }
}

/// A table that has asked for one neighbour at second 1.
fn asking() -> (Neighbours, u32) {
    let mut table = Neighbours::new(4, Resolver::Stack, at(1));
    let number = table.find(KEY.0, KEY.1, at(1)).unwrap();
    assert_eq!(table.resolve(number, at(1)), Resolution::Unknown);
    (table, number)
}

/// Solicitations that leave at an instant.
fn solicited(table: &mut Neighbours, now: Instant) -> Vec<Option<Mac>> {
    table.on_timeout(now);
    core::iter::from_fn(|| table.poll_solicitation(now))
        .map(|one| one.mac)
        .collect()
}

#[test]
fn frames_wait_for_the_answer_and_leave_in_order() {
    let (mut table, number) = asking();
    assert_eq!(solicited(&mut table, at(1)), [None]);
    table.hold(number, frame(1));
    table.hold(number, frame(2));
    table.learn(KEY, ONE, ANSWER, at(2));
    for byte in [1, 2] {
        let sent = table.poll_released().unwrap().frame;
        assert_eq!((&sent[..6], sent[6]), (&ONE.0[..], byte));
    }
    assert!(table.poll_released().is_none());
    assert_eq!(table.resolve(number, at(2)), Resolution::Known(ONE));
    assert_eq!(table.held_bytes, 0);
}

#[test]
fn three_solicitations_without_an_answer_end_the_wait() {
    let (mut table, number) = asking();
    table.hold(number, frame(1));
    assert_eq!(solicited(&mut table, at(1)), [None]);
    assert_eq!(solicited(&mut table, Instant(1_999_999)), []);
    assert_eq!(solicited(&mut table, at(2)), [None]);
    assert_eq!(solicited(&mut table, at(3)), [None]);
    let epoch = table.epoch();
    assert_eq!(solicited(&mut table, at(4)), []);
    assert_eq!(table.poll_failed(), Some(frame(1).frame));
    assert_eq!((table.dropped, table.held_bytes), (1, 0));
    assert_ne!(table.epoch(), epoch);
    assert_eq!(table.next_timeout(), None);
    // The next packet asks again.
    table.find(KEY.0, KEY.1, at(9)).unwrap();
    assert_eq!(solicited(&mut table, at(9)), [None]);
}

#[test]
fn only_some_frames_wait_and_the_oldest_goes() {
    let (mut table, number) = asking();
    for byte in 0..10 {
        table.hold(number, frame(byte));
    }
    table.learn(KEY, ONE, ANSWER, at(1));
    let bytes: Vec<u8> = core::iter::from_fn(|| table.poll_released())
        .map(|held| held.frame[6])
        .collect();
    assert_eq!(bytes, [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(table.dropped, 2);
}

/// RFC 4861 §7.3.3: unused neighbours cost no packet, used ones are asked by unicast.
#[test]
fn a_stale_neighbour_is_used_and_probed() {
    let (mut table, number) = asking();
    assert_eq!(solicited(&mut table, at(1)), [None]);
    table.learn(KEY, ONE, ANSWER, at(1));
    assert_eq!(solicited(&mut table, at(31)), []);
    assert_eq!(table.next_timeout(), None, "a stale neighbour has no timer");
    assert_eq!(table.resolve(number, at(100)), Resolution::Known(ONE));
    assert_eq!(solicited(&mut table, at(104)), []);
    assert_eq!(solicited(&mut table, at(105)), [Some(ONE)]);
    assert_eq!(solicited(&mut table, at(106)), [Some(ONE)]);
    assert_eq!(table.resolve(number, at(106)), Resolution::Known(ONE));
    assert_eq!(solicited(&mut table, at(107)), [Some(ONE)]);
    assert_eq!(solicited(&mut table, at(108)), []);
    assert_eq!(table.resolve(number, at(108)), Resolution::Unknown);
}

#[test]
fn progress_of_a_connection_spares_the_probe() {
    let (mut table, number) = asking();
    table.learn(KEY, ONE, News::Request, at(1));
    assert_eq!(table.resolve(number, at(2)), Resolution::Known(ONE));
    for second in 3..100 {
        table.confirm(number, at(second));
        assert_eq!(solicited(&mut table, at(second)), [], "{second}");
    }
}

/// RFC 4861 §7.2.5, and ARP, whose packets always override.
#[test]
fn another_mac_address_counts_if_it_overrides() {
    let keeps = News::Answer { overrides: false };
    let announced = News::Announcement { overrides: true };
    for (name, news, mac, is_reachable) in [
        ("an answer that overrides", ANSWER, OTHER, true),
        ("an answer that does not", keeps, ONE, false),
        ("a request", News::Request, OTHER, false),
        ("an announcement", announced, OTHER, false),
    ] {
        let (mut table, number) = asking();
        table.learn(KEY, ONE, ANSWER, at(1));
        table.learn(KEY, OTHER, news, at(2));
        assert_eq!(
            table.resolve(number, at(2)),
            Resolution::Known(mac),
            "{name}"
        );
        let state = table.entries[number as usize].state;
        assert_eq!(
            matches!(state, State::Reachable { .. }),
            is_reachable,
            "{name}"
        );
    }
}

#[test]
fn announcements_add_no_neighbour_and_group_addresses_are_ignored() {
    let mut table = Neighbours::new(4, Resolver::Stack, at(0));
    let announced = News::Announcement { overrides: true };
    table.learn(KEY, ONE, announced, at(1));
    table.learn(KEY, ONE, ANSWER, at(1));
    table.learn(KEY, Mac::BROADCAST, News::Request, at(1));
    assert!(table.by_address.is_empty());
}

#[test]
fn a_full_table_gives_up_unused_neighbours_only() {
    let mut table = Neighbours::new(2, Resolver::Stack, at(0));
    let host = |last| (0, IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
    let used = table.find(0, host(1).1, at(1)).unwrap();
    table.learn(host(1), ONE, ANSWER, at(1));
    for last in 2..200 {
        table.learn(host(last), OTHER, News::Request, at(2));
    }
    assert_eq!(table.entries.len(), 2);
    assert_eq!(table.resolve(used, at(3)), Resolution::Known(ONE));
    let next = table.find(0, host(201).1, at(3)).unwrap();
    assert_ne!(next, used);
    // Both are in use now.
    assert_eq!(table.find(0, host(202).1, at(3)), None);
}

#[test]
fn a_permanent_neighbour_does_not_change() {
    let mut table = Neighbours::new(4, Resolver::Stack, at(0));
    assert!(table.set_permanent(KEY, ONE, at(0)));
    table.learn(KEY, OTHER, News::Request, at(1));
    let number = table.find(KEY.0, KEY.1, at(1)).unwrap();
    assert_eq!(table.resolve(number, at(1)), Resolution::Known(ONE));
    assert_eq!(solicited(&mut table, at(1000)), []);
}

#[test]
fn a_doubtful_neighbour_is_probed_soon() {
    let (mut table, number) = asking();
    table.learn(KEY, ONE, ANSWER, at(1));
    table.doubt(number, at(1));
    assert_eq!(table.resolve(number, at(2)), Resolution::Known(ONE));
    assert_eq!(solicited(&mut table, at(7)), [Some(ONE)]);
}

#[test]
fn the_owner_is_asked_about_a_doubtful_neighbour_once_a_second() {
    let mut table = Neighbours::new(4, Resolver::Owner, at(0));
    assert!(table.set_permanent(KEY, ONE, at(1)));
    let number = table.find(KEY.0, KEY.1, at(1)).unwrap();
    for (second, expected) in [(1, 0), (2, 1), (2, 0), (3, 1)] {
        table.doubt(number, at(second));
        let asked = solicited(&mut table, at(second));
        assert_eq!(asked, vec![Some(ONE); expected], "second {second}");
    }
    table.forget(KEY);
    let number = table.find(KEY.0, KEY.1, at(4)).unwrap();
    assert_eq!(table.resolve(number, at(4)), Resolution::Unknown);
    assert_eq!(solicited(&mut table, at(4)), [None]);
}

#[test]
fn forgotten_neighbours_make_room() {
    let mut table = Neighbours::new(2, Resolver::Owner, at(0));
    let host = |last| (0, IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
    for last in 1..100 {
        assert!(table.set_permanent(host(last), ONE, at(0)), "{last}");
        assert!(table.set_permanent(host(last + 1), OTHER, at(0)), "{last}");
        assert!(!table.set_permanent(host(last + 2), ONE, at(0)), "{last}");
        table.forget(host(last));
    }
    assert_eq!(table.entries.len(), 2);
}
