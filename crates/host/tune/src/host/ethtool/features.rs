//! Offloads by name: names of the features, and four bits of each.

use std::io;

use super::{call, invalid};

const GET_STRINGS: u32 = 0x1b;
const GET_STRING_COUNT: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`.
const FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`, in 32-bit numbers.
const NAME_WORDS: usize = 8;
/// Features of a kernel; there were 64 in 2024.
const LIMIT: u32 = 1024;
/// Numbers of a block of 32 features: available, requested, active, never changed.
const BLOCK: usize = 4;

/// The state of a feature; `None` if the kernel does not know it.
pub(super) fn read(nic: &str, name: &str) -> io::Result<Option<String>> {
    let names = names(nic)?;
    let Some(at) = names.iter().position(|known| known == name) else {
        return Ok(None);
    };
    let blocks = names.len().div_ceil(32);
    let mut words = vec![GET_FEATURES, size(blocks)];
    words.resize(2 + blocks * BLOCK, 0);
    call(nic, &mut words)?;
    let bit = |field: usize| {
        let word = words.get(2 + at / 32 * BLOCK + field);
        word.is_some_and(|word| word >> (at % 32) & 1 == 1)
    };
    let (is_available, is_active, is_fixed) = (bit(0), bit(2), bit(3));
    let state = if is_active { "on" } else { "off" };
    let is_fixed = is_fixed || !is_available;
    Ok(Some(if is_fixed {
        format!("{state} [fixed]")
    } else {
        state.to_owned()
    }))
}

pub(super) fn write(nic: &str, name: &str, is_on: bool) -> io::Result<()> {
    let names = names(nic)?;
    let at = names.iter().position(|known| known == name);
    let at = at.ok_or_else(|| invalid(name))?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![SET_FEATURES, size(blocks)];
    // Two numbers for each block: which bits are set by this call, and to what.
    words.resize(2 + blocks * 2, 0);
    let bit = 1_u32 << (at % 32);
    for (field, value) in [bit, if is_on { bit } else { 0 }].into_iter().enumerate() {
        if let Some(word) = words.get_mut(2 + at / 32 * 2 + field) {
            *word = value;
        }
    }
    call(nic, &mut words)
}

fn size(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

fn names(nic: &str) -> io::Result<Vec<String>> {
    // command, reserved, a mask of 64 bits, and one number for each bit of it.
    let mut count = [GET_STRING_COUNT, 0, 0, 0, 0];
    let mask = (1_u64 << FEATURES).to_ne_bytes();
    let [a, b, c, d, e, f, g, h] = mask;
    count[2] = u32::from_ne_bytes([a, b, c, d]);
    count[3] = u32::from_ne_bytes([e, f, g, h]);
    call(nic, &mut count)?;
    let [.., features] = count;
    if features > LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let features = features as usize;
    let mut words = vec![GET_STRINGS, FEATURES, size(features)];
    words.resize(3 + features * NAME_WORDS, 0);
    call(nic, &mut words)?;
    let texts = words.get(3..).unwrap_or_default().chunks(NAME_WORDS);
    Ok(texts.map(text).collect())
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
