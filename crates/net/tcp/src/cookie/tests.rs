//! Round trips, forgeries and ages of cookies.

use super::*;
use crate::connection::{Connection, Place, StateName};
use crate::context::Arrival;
use crate::counters::Counters;

const FLOW: &[u8] = b"10.0.0.1:5 10.0.0.2:80";
const MINUTE: u64 = PERIOD_US;
/// Late in a period.
const NOW: Instant = Instant(100 * MINUTE + 59_000_000);
const IRS: SeqNum = SeqNum(u32::MAX - 3);

struct Nowhere;

impl Place for Nowhere {
    fn place(&mut self, _from: u32, _to: u32, _length: u32) {}
}

fn secret() -> CookieSecret {
    CookieSecret::new([1, 2], NOW)
}

fn start() -> Start {
    Start {
        iss: SeqNum(0),
        timestamp_offset: 77,
        buffer: 1_000_000,
    }
}

fn config() -> Config {
    Config {
        has_ecn: true,
        mss: 9000,
        ..Config::default()
    }
}

fn syn(options: Options, flags: Flags) -> Header {
    Header {
        ports: NO_PORTS,
        seq: IRS,
        ack: None,
        flags: Flags::SYN | flags,
        window: 60_000,
        urgent: None,
        options,
    }
}

/// A SYN with every option.
fn rich() -> Header {
    let options = Options {
        mss: Some(1460),
        window_scale: Some(9),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5, echo: 0 }),
        ..Options::NONE
    };
    syn(options, Flags::ECE | Flags::CWR)
}

fn answer(secret: &CookieSecret, syn: &Header, now: Instant) -> Header {
    let mut counters = Counters::default();
    let mut context = Context {
        now,
        config: &config(),
        counters: &mut counters,
    };
    let answer = secret.syn_ack(FLOW, &start(), syn, &mut context);
    assert_eq!(counters.sync_cookies_sent, 1);
    answer
}

/// The acknowledgement of an answer.
fn ack_of(answer: &Header) -> Header {
    let timestamps = answer.options.timestamps.map(|one| Timestamps {
        value: 9,
        echo: one.value,
    });
    Header {
        ports: NO_PORTS,
        seq: IRS + 1,
        ack: Some(answer.seq + 1),
        flags: Flags::NONE,
        window: 100,
        urgent: None,
        options: Options {
            timestamps,
            ..Options::NONE
        },
    }
}

#[test]
fn every_combination_of_options_survives() {
    for bits in 0..32_u8 {
        let has = |bit: u8| bits & 1 << bit != 0;
        let timestamps = has(0).then_some(Timestamps { value: 5, echo: 0 });
        for shift in [None, Some(0), Some(7), Some(14)] {
            let options = Options {
                mss: has(1).then_some(1452),
                window_scale: shift,
                sack_permitted: has(2),
                timestamps,
                ..Options::NONE
            };
            let flags = if has(3) {
                Flags::ECE | Flags::CWR
            } else {
                Flags::NONE
            };
            let syn = syn(options, flags);
            let answer = answer(&secret(), &syn, NOW);
            assert_eq!(answer.ack, Some(IRS + 1));
            let baked = secret()
                .open(FLOW, &ack_of(&answer), NOW)
                .expect("a valid cookie");
            assert_eq!((baked.iss, baked.irs), (answer.seq, IRS));
            let found = Agreed::of(&config(), &start(), &baked.syn, false);
            let mut expected = Agreed::of(&config(), &start(), &syn, false);
            if !has(0) {
                // Without timestamps, only the segment size is kept.
                expected = Agreed {
                    is_scaled: false,
                    send_shift: 0,
                    recv_shift: 0,
                    has_sack: false,
                    has_ecn: false,
                    ..expected
                };
            }
            assert_eq!(found, expected, "{syn:?}");
            // The peer must have been told the same.
            assert_eq!(answer.options.window_scale.is_some(), expected.is_scaled);
            assert_eq!(answer.options.sack_permitted, expected.has_sack);
            assert_eq!(answer.options.timestamps.is_some(), expected.has_timestamps);
            assert_eq!(answer.flags.contains(Flags::ECE), expected.has_ecn);
        }
    }
}

#[test]
fn a_segment_size_is_rounded_down() {
    for (mss, kept) in [
        (None, 536),
        (Some(100), 536),
        (Some(536), 536),
        (Some(1219), 536),
        (Some(1459), 1452),
        (Some(1460), 1460),
        (Some(65_535), 8940),
    ] {
        let options = Options {
            mss,
            ..Options::NONE
        };
        let answer = answer(&secret(), &syn(options, Flags::NONE), NOW);
        let baked = secret().open(FLOW, &ack_of(&answer), NOW).expect("valid");
        assert_eq!(baked.syn.options.mss, Some(kept), "{mss:?}");
    }
}

#[test]
fn a_cookie_is_valid_in_its_period_and_in_the_next() {
    let ack = ack_of(&answer(&secret(), &rich(), NOW));
    for (after_us, is_valid) in [
        (0, true),
        (1_000_000, true),
        (60_999_999, true),
        (61_000_000, false),
        // The low bits of the period are the same again.
        (32 * MINUTE, false),
    ] {
        let now = NOW + Micros(after_us);
        let found = secret().open(FLOW, &ack, now);
        assert_eq!(found.is_some(), is_valid, "{after_us}");
    }
}

#[test]
fn another_connection_or_number_has_no_use_for_a_cookie() {
    let ack = ack_of(&answer(&secret(), &rich(), NOW));
    let with = |edit: fn(&mut Header)| {
        let mut ack = ack;
        edit(&mut ack);
        ack
    };
    let open = |flow: &[u8], ack: &Header| secret().open(flow, ack, NOW).is_some();
    assert!(open(FLOW, &ack));
    assert!(!open(b"10.0.0.1:6 10.0.0.2:80", &ack));
    for (name, forged) in [
        ("the peer's number", with(|ack| ack.seq += 1)),
        (
            "this side's number",
            with(|ack| ack.ack = ack.ack.map(|ack| ack + 1)),
        ),
        ("no acknowledgement", with(|ack| ack.ack = None)),
        ("a reset", with(|ack| ack.flags = Flags::RST)),
        ("a SYN", with(|ack| ack.flags = Flags::SYN)),
        ("no timestamps", with(|ack| ack.options.timestamps = None)),
        (
            "other options",
            with(|ack| {
                let echoed = ack.options.timestamps;
                ack.options.timestamps = echoed.map(|one| Timestamps {
                    echo: one.echo ^ SACK,
                    ..one
                });
            }),
        ),
    ] {
        assert!(!open(FLOW, &forged), "{name}");
    }
    let other = CookieSecret::new([1, 3], NOW);
    assert!(other.open(FLOW, &ack, NOW).is_none());
}

/// Of all numbers around the cookie, only the cookie is valid.
#[test]
fn guessing_fails() {
    let answer = answer(&secret(), &rich(), NOW);
    let ack = ack_of(&answer);
    let is_valid = |guess: u32| {
        let guessed = Header {
            ack: Some(answer.seq + guess),
            ..ack
        };
        secret().open(FLOW, &guessed, NOW).is_some()
    };
    let valid: alloc::vec::Vec<u32> = (0..100_000).filter(|guess| is_valid(*guess)).collect();
    assert_eq!(valid, [1]);
}

#[test]
fn timestamps_that_the_syn_did_not_have_are_ignored() {
    let plain = syn(Options::NONE, Flags::NONE);
    let mut ack = ack_of(&answer(&secret(), &plain, NOW));
    ack.options.timestamps = Some(Timestamps { value: 1, echo: 63 });
    let baked = secret().open(FLOW, &ack, NOW).expect("a valid cookie");
    assert_eq!(baked.syn.options.timestamps, None);
}

#[test]
fn cookies_of_the_key_before_are_valid_until_they_are_too_old() {
    let mut secret = secret();
    let ack = ack_of(&answer(&secret, &rich(), NOW));
    assert_eq!(secret.rotates_at(), NOW + Micros::from_secs(3600));
    secret.rotate([3, 4], NOW);
    assert!(secret.open(FLOW, &ack, NOW).is_some());
    let new = ack_of(&answer(&secret, &rich(), NOW));
    assert_ne!(new.ack, ack.ack);
    assert!(secret.open(FLOW, &new, NOW).is_some());
    secret.rotate([5, 6], NOW);
    assert!(secret.open(FLOW, &ack, NOW).is_none());
    assert!(secret.open(FLOW, &new, NOW).is_some());
}

/// The memo must not put a timestamp into the future: later ones would be older.
#[test]
fn a_timestamp_with_options_is_not_later_than_now() {
    for value in [0, 1, 63, 64, 1000, u32::MAX] {
        for memo in [0, 1, 31, 63] {
            let made = with_memo(value, memo);
            assert_eq!(made & MEMO_MASK, memo);
            assert!(value.wrapping_sub(made) < 64, "{value} {memo} {made}");
        }
    }
}

#[test]
fn a_connection_begins_with_the_payload_of_the_acknowledgement() {
    let secret = secret();
    let mut counters = Counters::default();
    let config = config();
    let mut context = Context {
        now: NOW,
        config: &config,
        counters: &mut counters,
    };
    let header = ack_of(&secret.syn_ack(FLOW, &start(), &rich(), &mut context));
    let mut from = |flow: &[u8], header: &Header| {
        let arrival = Arrival {
            header,
            length: 10,
            is_congested: false,
        };
        let found = Connection::from_cookie(
            (&secret, flow),
            start(),
            &arrival,
            &mut Nowhere,
            &mut context,
        );
        found.map(|(connection, events)| {
            (connection.state(), events.is_established, events.readable)
        })
    };
    assert_eq!(
        from(FLOW, &header),
        Some((StateName::Established, true, 10))
    );
    assert_eq!(from(b"another", &header), None);
    assert_eq!(counters.sync_cookies_sent, 1);
    assert_eq!(
        (counters.sync_cookies_recv, counters.sync_cookies_failed),
        (1, 1)
    );
    assert_eq!((counters.passive_opens, counters.attempt_fails), (1, 0));
}
