//! Big-endian integers at fixed offsets of an array.
//!
//! The arrays have constant lengths, so that the compiler removes the bounds checks.

use core::net::{Ipv4Addr, Ipv6Addr};

#[inline]
pub(crate) fn get_u16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn get_u32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn get_ipv4<const N: usize>(bytes: &[u8; N], at: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(get_u32(bytes, at))
}

#[inline]
pub(crate) fn get_ipv6<const N: usize>(bytes: &[u8; N], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    Ipv6Addr::from(octets)
}

/// Fills `place`, which has `4 * N` bytes, with integers in network byte order.
#[inline]
pub(crate) fn put_words<const N: usize>(place: &mut [u8], words: [u32; N]) {
    for (four, word) in place.as_chunks_mut().0.iter_mut().zip(words) {
        *four = word.to_be_bytes();
    }
}

/// Writes `value` at `at`; an array of constant length is written without bounds checks.
#[inline]
pub(crate) fn put<const N: usize, const M: usize>(bytes: &mut [u8; N], at: usize, value: [u8; M]) {
    bytes[at..at + M].copy_from_slice(&value);
}
