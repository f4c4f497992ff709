//! Examples of the RFCs, and a naive sum for every length and alignment.

extern crate std;

use super::{Sum, update};
use std::vec::Vec;

/// RFC 1071 §1 word by word: pairs of bytes, carries added at the end, an odd byte padded.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(pair[0]) * 256 + u32::from(low);
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    u16::try_from(sum).unwrap()
}

#[test]
fn the_example_of_rfc_1071() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::of(&bytes).value(), 0xddf2);
    assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
}

#[test]
fn extremes() {
    for (name, bytes, value) in [
        ("nothing", &[][..], 0),
        ("zeros", &[0; 64][..], 0),
        ("ones", &[0xff; 64], 0xffff),
        ("one byte is the upper one", &[0xab], 0xab00),
        ("three bytes", &[0x01, 0x02, 0x03], 0x0402),
        ("a carry", &[0xff, 0xff, 0x00, 0x01], 0x0001),
        (
            "a carry of a carry",
            &[0xff, 0xff, 0xff, 0xff, 0x00, 0x01],
            0x0001,
        ),
    ] {
        assert_eq!(Sum::of(bytes).value(), value, "{name}");
    }
    assert!(!Sum::of(&[0; 20]).is_valid());
    assert!(Sum::of(&[0xff; 20]).is_valid());
}

/// Bytes without a pattern that would hide an exchange of bytes.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[3]
    };
    core::iter::repeat_with(next).take(length).collect()
}

#[test]
fn every_length_and_start_equals_the_naive_sum() {
    let bytes = noise(200);
    for start in 0..8 {
        for end in start..bytes.len() {
            let part = &bytes[start..end];
            assert_eq!(Sum::of(part).value(), naive(part), "{start}..{end}");
        }
    }
    let jumbo = noise(65_535);
    assert_eq!(Sum::of(&jumbo).value(), naive(&jumbo));
    let ones = std::vec![0xff; 1 << 20];
    assert_eq!(Sum::of(&ones).value(), 0xffff);
}

#[test]
fn parts_of_any_length_make_the_same_sum() {
    let bytes = noise(90);
    let whole = naive(&bytes);
    for first in 0..bytes.len() {
        for second in [first, first + 1, first + 7, first + 33] {
            let second = second.min(bytes.len());
            let parts = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(Sum::of_slices(&parts).value(), whole, "{first}, {second}");
            let joined = Sum::of(parts[0])
                .then(Sum::of(parts[1]).then(Sum::of(parts[2])))
                .value();
            assert_eq!(joined, whole, "{first}, {second}");
        }
    }
}

#[test]
fn integers_are_bytes_in_network_order() {
    for prefix in [&[][..], &[0x11], &[0x11, 0x22]] {
        let sum = Sum::of(prefix).u16(0xa1b2).u32(0xc3d4_e5f6);
        let bytes = [prefix, &[0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6]].concat();
        assert_eq!(sum.value(), naive(&bytes), "{prefix:?}");
        assert_eq!(sum.bytes(&[7]).value(), naive(&[&bytes[..], &[7]].concat()));
    }
}

/// RFC 1624 §4: equation 3 gives 0x0000 where that of RFC 1141 gives 0xffff.
#[test]
fn the_example_of_rfc_1624() {
    let update = |checksum, old, new| update(checksum, Sum::ZERO.u16(old), Sum::ZERO.u16(new));
    assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    assert_eq!(update(0x0000, 0x3285, 0x5555), 0xdd2f);
    // The checksum 0x0000 belongs to the sum 0xffff. 0x0000 and 0xffff are the same number.
    assert_eq!(update(0x0000, 0x0000, 0xffff), 0x0000);
    assert_eq!(update(0x0000, 0xffff, 0x0000), 0x0000);
    assert_eq!(update(0x1234, 0x0000, 0x0000), 0x1234);
}

/// Old and new values of one word at the limits of the arithmetic.
#[test]
fn an_update_equals_the_checksum_formed_anew() {
    let corners = [0x0000, 0x0001, 0x7fff, 0x8000, 0xfffe, 0xffff];
    for rest in [0x0001_u16, 0x00ff, 0x8000, 0xfffe, 0xffff] {
        for old in corners {
            for new in corners {
                let packet = |word| Sum::ZERO.u16(rest).u16(word);
                let updated = update(
                    packet(old).checksum(),
                    Sum::ZERO.u16(old),
                    Sum::ZERO.u16(new),
                );
                assert_eq!(updated, packet(new).checksum(), "{rest:x} {old:x} {new:x}");
            }
        }
    }
}

/// The exception that the documentation of `update` names.
#[test]
fn an_update_to_zeros_alone_differs() {
    let updated = update(0xfffe, Sum::ZERO.u16(1), Sum::ZERO.u16(0));
    assert_eq!(updated, 0x0000);
    assert_eq!(Sum::of(&[0, 0]).checksum(), 0xffff);
}
