//! Tests of proposals as messages: literal bytes, every kind of damage, and passed descriptors.

use super::*;
use crate::tuple::Endpoint;
use proptest::prelude::*;

fn tuple() -> Tuple {
    let end = |host, port| Endpoint {
        address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, host],
        port,
    };
    Tuple {
        local: end(2, 40_000),
        remote: end(1, 6379),
    }
}

fn proposals() -> impl Strategy<Value = Proposal> {
    (any::<u64>(), 0u32..64, 13u32..=22, any::<[u8; 4]>()).prop_map(
        |(segment, slot, shift, key)| {
            let mut made = Proposal::new(&tuple(), segment, slot, shift);
            made.key[12..16].copy_from_slice(&key);
            made
        },
    )
}

/// Checks the invariants of a received proposal, with literal limits.
fn is_promised(p: &Proposal) -> bool {
    p.protocol == PROTOCOL && p.slot < 64 && (13..=22).contains(&p.max_shift)
}

#[test]
fn the_message_is_these_bytes() {
    let bytes = Proposal::new(&tuple(), 0x0102_0304_0506_0708, 63, 18).encode();
    assert_eq!(bytes.len(), 64);
    assert_eq!(&bytes[..12], b"saiga/ch\x05\0\0\0");
    assert_eq!(&bytes[12..16], [63, 0, 0, 0]);
    assert_eq!(&bytes[16..24], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(&bytes[24..28], [18, 0, 0, 0]);
    assert_eq!(&bytes[28..], tuple().key());
}

#[test]
fn another_protocol_is_recognised_by_its_number_alone() {
    let ours = Proposal::new(&tuple(), 1, 2, 18).encode();
    for number in [0u32, 1, 7, u32::MAX] {
        let mut theirs = ours.to_vec();
        theirs[8..12].copy_from_slice(&number.to_le_bytes());
        theirs.extend_from_slice(b"and unknown fields");
        for len in 0..theirs.len() {
            let expected = if len < 12 {
                Refusal::No
            } else {
                Refusal::Version
            };
            assert_eq!(
                Proposal::decode(&theirs[..len]),
                Err(expected),
                "{number}, {len} bytes"
            );
        }
    }
}

proptest! {
    #[test]
    fn what_is_sent_is_received(sent in proposals()) {
        prop_assert_eq!(Proposal::decode(&sent.encode()), Ok(sent));
    }

    #[test]
    fn a_message_of_another_length_is_refused(sent in proposals(), more in 1usize..100) {
        let bytes = sent.encode();
        for len in 0..bytes.len() {
            prop_assert_eq!(Proposal::decode(&bytes[..len]), Err(Refusal::No));
        }
        let mut longer = bytes.to_vec();
        longer.resize(bytes.len() + more, 0);
        prop_assert_eq!(Proposal::decode(&longer), Err(Refusal::No));
    }

    #[test]
    fn a_flipped_bit_is_refused_or_gives_another_valid_proposal(sent in proposals()) {
        let bytes = sent.encode();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let got = Proposal::decode(&flipped);
            let expected_refusal = match bit / 8 {
                0..8 => Some(Refusal::No),
                8..12 => Some(Refusal::Version),
                _ => None,
            };
            match (got, expected_refusal) {
                (Err(got), Some(expected)) => prop_assert_eq!(got, expected),
                (Err(got), None) => prop_assert_eq!(got, Refusal::No),
                (Ok(_), Some(_)) => prop_assert!(false, "bit {} is not checked", bit),
                (Ok(other), None) => {
                    prop_assert!(is_promised(&other) && other != sent);
                    prop_assert_eq!(other.encode(), flipped);
                }
            }
        }
    }

    #[test]
    fn random_bytes_give_only_valid_proposals(
        valid_start in 0usize..4,
        mut bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        // Mostly behind a valid start: otherwise all would be refused at the magic number.
        let start = [&b"saiga/ch"[..], &PROTOCOL.to_le_bytes()].concat();
        if valid_start > 0 && bytes.len() >= start.len() {
            bytes[..start.len()].copy_from_slice(&start);
        }
        if let Ok(got) = Proposal::decode(&bytes) {
            prop_assert!(is_promised(&got));
            prop_assert_eq!(&got.encode()[..], &bytes[..]);
        }
    }
}

/// Sends a proposal with any number of descriptors, without [`propose`].
fn send_with(fd: Fd, bytes: &mut [u8], descriptors: &[Fd]) {
    let mut iov = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let len = 16 + 4 * descriptors.len();
    let mut control = [0u64; 8];
    control[0] = len as u64;
    control[1] = u64::from(libc::SOL_SOCKET.cast_unsigned())
        | u64::from(libc::SCM_RIGHTS.cast_unsigned()) << 32;
    for (i, passed) in descriptors.iter().enumerate() {
        control[2 + i / 2] |= u64::from(passed.cast_unsigned()) << (32 * (i % 2));
    }
    let mut msg = message(&mut iov, None);
    msg.msg_control = control.as_mut_ptr().cast();
    msg.msg_controllen = len as _;
    // SAFETY: the message and all that it points to outlive the call.
    let sent = unsafe { libc::sendmsg(fd, &raw const msg, 0) };
    assert_eq!(sent, bytes.len().cast_signed());
}

/// Number of this process's descriptors of `file`; those of other tests are not counted.
fn copies_of(file: &std::fs::File) -> usize {
    use std::os::unix::fs::MetadataExt;
    let wanted = file.metadata().map(|m| (m.dev(), m.ino())).ok();
    let all = std::fs::read_dir("/proc/self/fd").expect("our own descriptors");
    all.filter_map(|entry| std::fs::metadata(entry.ok()?.path()).ok())
        .filter(|m| Some((m.dev(), m.ino())) == wanted)
        .count()
}

#[test]
fn at_most_one_descriptor_is_received() {
    use std::os::fd::{AsRawFd, FromRawFd};
    let memory = sys::memfd(c"rendezvous-test", 0).expect("a descriptor");
    // SAFETY: new and ours.
    let file = unsafe { std::fs::File::from_raw_fd(memory) };
    let mut pair = [0; 2];
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, KIND, 0, pair.as_mut_ptr()) };
    assert_eq!(made, 0);
    let good = Proposal::new(&tuple(), 1, 2, 18).encode();
    for count in 0..4 {
        for (damaged, expected) in [
            (0, None),
            (8, Some(libc::EPROTONOSUPPORT)),
            (12, Some(libc::EPROTO)),
        ] {
            let mut bytes = good;
            if damaged > 0 {
                bytes[damaged] ^= 0xc0;
            }
            send_with(pair[0], &mut bytes, &vec![file.as_raw_fd(); count]);
            let heard = receive(pair[1]);
            assert_eq!(
                heard.err().map(|e| e.0),
                expected,
                "{count} descriptors, {damaged}"
            );
            let passed = heard.ok().and_then(|(_, passed)| passed);
            assert_eq!(passed.is_some(), expected.is_none() && count > 0);
            let copies = copies_of(&file);
            assert_eq!(
                copies,
                1 + usize::from(passed.is_some()),
                "{count} sent, {damaged} damaged"
            );
            passed.into_iter().for_each(sys::close);
        }
    }
    pair.into_iter().for_each(sys::close);
}
