//! One connection, driven by bytes: calls, time and segments, most of them plausible. The fuzz
//! target `tcp_stream` and the tests of this folder include this module.
//!
//! The first four bytes choose the settings and how the connection begins. Then follows one
//! operation after another, each a byte and its arguments; missing arguments are zero.

mod begin;
mod bytes;
mod check;
mod host;
mod peer;
mod receive;

use std::num::NonZeroU32;

use saiga_tcp::{Algorithm, Config, IcmpError, KeepAlive, Micros, Settings};

use begin::Begin;
use bytes::Bytes;
use host::Host;

/// Operations of one input at most: longer inputs find nothing that shorter ones do not.
const MOST_OPERATIONS: u32 = 500;

/// Drives a connection. Panics if an invariant does not hold.
pub(crate) fn stream(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let mut host = begin(&mut bytes);
    host.pump();
    for _ in 0..MOST_OPERATIONS {
        if bytes.is_empty() || host.is_closed() {
            break;
        }
        operate(&mut host, &mut bytes);
        host.pump();
    }
}

fn begin(bytes: &mut Bytes<'_>) -> Host {
    let (switches, sizes) = (bytes.byte(), bytes.byte());
    let has = |bit: u8| switches >> bit & 1 == 0;
    let config = Config {
        has_timestamps: has(0),
        has_sack: has(1),
        has_window_scale: has(2),
        has_ecn: has(3),
        paced_from: [Micros::ZERO, Micros::MAX][usize::from(has(4))],
        has_mtu_probing: has(5),
        congestion: if has(6) {
            Algorithm::Cubic
        } else {
            Algorithm::NewReno
        },
        mss: [1460, 536, 9000, 100][usize::from(sizes & 3)],
        ..Config::default()
    };
    let buffer = [65_535, 1_000_000, 2000, 300][usize::from(sizes >> 2 & 3)];
    let most = [0, 65_000, 3000, 20][usize::from(sizes >> 4 & 3)];
    let begin = match bytes.byte() % 6 {
        0 | 1 => Begin::Established,
        2 => Begin::Connect,
        3 => Begin::Accept,
        4 => Begin::Accepted,
        _ => Begin::Cookie,
    };
    Host::new(config, buffer, most, begin, bytes)
}

fn operate(host: &mut Host, bytes: &mut Bytes<'_>) {
    match bytes.byte() % 16 {
        0..=5 => host.on_segment(bytes),
        6 => host.write(u32::from(bytes.short()), false),
        7 => host.read(u32::from(bytes.short())),
        8 => host.run_next(),
        9 => host.run(Micros::from_millis(bytes.byte().into())),
        10 => host.write(bytes.byte().into(), true),
        11 => host.shutdown(),
        12 => {
            let error = match bytes.byte() % 3 {
                0 => IcmpError::Unreachable,
                1 => IcmpError::Refused,
                _ => IcmpError::SourceQuench,
            };
            host.on_icmp(error, bytes);
        }
        13 => {
            let mss = bytes.short();
            host.on_icmp(IcmpError::TooBig { mss }, bytes);
        }
        14 => host.run_late(Micros::from_millis(u64::from(bytes.short()) * 16)),
        _ => seldom(host, bytes),
    }
}

fn seldom(host: &mut Host, bytes: &mut Bytes<'_>) {
    match bytes.byte() % 8 {
        0 => host.close(),
        1 => host.abort(),
        2 => host.grow(bytes.short()),
        _ => {
            let switches = bytes.byte();
            let has = |bit: u8| switches >> bit & 1 != 0;
            host.set(Settings {
                is_nodelay: has(0),
                keep_alive: has(1).then_some(KeepAlive {
                    idle_ms: 1000,
                    ..KeepAlive::default()
                }),
                user_timeout_ms: NonZeroU32::new(30_000).filter(|_| has(2)),
            });
        }
    }
}
