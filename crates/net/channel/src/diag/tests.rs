//! Tests with connections of the running kernel, and with literal answers of other kernels.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Both ends of a connection to `host`.
fn pair(host: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

#[test]
fn a_mark_is_visible_from_outside_and_only_on_its_own_end() {
    let asking = open(3).unwrap();
    for host in ["127.0.0.1", "::1"] {
        let (one, other) = pair(host);
        let seen = |of: &TcpStream| {
            let tuple = Tuple::of(of.as_raw_fd()).unwrap();
            lookup(asking, &tuple).unwrap().marked
        };
        if seen(&one).is_none() {
            return; // A kernel before 5.10.
        }
        assert_eq!((seen(&one), seen(&other)), (Some(false), Some(false)));
        mark(one.as_raw_fd(), true).unwrap();
        assert_eq!((seen(&one), seen(&other)), (Some(true), Some(false)));
        mark(one.as_raw_fd(), false).unwrap();
        assert_eq!((seen(&one), seen(&other)), (Some(false), Some(false)));
    }
    sys::close(asking);
}

/// `struct inet_diag_msg`, followed by `attributes`.
fn answer(attributes: &[u8]) -> Vec<u8> {
    let mut all = vec![0; ATTRIBUTES_AT];
    all[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    all.extend_from_slice(attributes);
    all
}

#[test]
#[cfg(target_endian = "little")]
fn attributes_are_parsed_within_their_bounds() {
    for (name, attributes, expected) in [
        ("none", &[][..], None),
        ("another, padded", &[5, 0, 8, 0, 1, 0, 0, 0], None),
        (
            "behind another",
            &[5, 0, 8, 0, 1, 0, 0, 0, 6, 0, 22, 0, 0x42, 0, 0, 0],
            Some(true),
        ),
        ("not marked", &[6, 0, 22, 0, 0x52, 0, 0, 0], Some(false)),
        ("without a value", &[4, 0, 22, 0], None),
        ("cut short", &[6, 0, 22, 0], None),
        ("a length of zero", &[0, 0, 22, 0], None),
        ("a length beyond the end", &[0xff, 0xff, 5, 0], None),
    ] {
        assert_eq!(
            parse(&answer(attributes)).unwrap().marked,
            expected,
            "{name}"
        );
    }
}
