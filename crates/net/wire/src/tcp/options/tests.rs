//! Lists of options byte by byte.

extern crate std;

use super::*;
use std::vec::Vec;

const NONE: Options = Options::NONE;
const STAMPS: [u8; 10] = [8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
const TIMES: Timestamps = Timestamps {
    value: 0x0102_0304,
    echo: 0x0506_0708,
};

fn with(set: impl Fn(&mut Options)) -> Options {
    let mut options = NONE;
    set(&mut options);
    options
}

fn mss(mss: u16) -> Options {
    with(|options| options.mss = Some(mss))
}

fn scale(shift: u8) -> Options {
    with(|options| options.window_scale = Some(shift))
}

fn times() -> Options {
    with(|options| options.timestamps = Some(TIMES))
}

/// `n` blocks: 0x01010101 to 0x02020202, 0x03030303 to 0x04040404, and so on.
fn blocks(n: u32) -> Options {
    let edge = |edge: u32| SeqNum(edge * 0x0101_0101);
    let block = |i: u32| SackBlock {
        left: edge(2 * i + 1),
        right: edge(2 * i + 2),
    };
    with(|options| options.sack = (0..n).map(block).collect())
}

/// The bytes of `front` and of `n` blocks.
fn block_bytes(front: [u8; 4], n: usize) -> Vec<u8> {
    let edges = (1..=8).flat_map(|byte| [byte; 4]).take(n * 8);
    front.into_iter().chain(edges).collect()
}

fn assert_list(name: &str, bytes: &[u8], expected: Options) {
    assert_eq!(Options::parse(bytes), expected, "{name}");
}

#[test]
fn lists_are_read() {
    let permitted = with(|options| options.sack_permitted = true);
    assert_list("none", &[], NONE);
    assert_list("padding", &[1, 1, 1, 0], NONE);
    assert_list("end before others", &[0, 2, 4, 5], NONE);
    assert_list("MSS", &[2, 4, 0x05, 0xb4], mss(1_460));
    assert_list("the last one counts", &[2, 4, 1, 0, 2, 4, 2, 0], mss(512));
    assert_list("scale", &[1, 3, 3, 14], scale(14));
    assert_list("scale above 14", &[1, 3, 3, 15], scale(14));
    assert_list("scale 255", &[3, 3, 255, 0], scale(14));
    assert_list("SACK permitted", &[4, 2, 1, 1], permitted);
    assert_list("times in front", &[&STAMPS[..], &[1, 1]].concat(), times());
    assert_list("times behind", &[&[1, 1], &STAMPS[..]].concat(), times());
    assert_list("one block", &block_bytes([1, 1, 5, 10], 1), blocks(1));
    assert_list("four blocks", &block_bytes([1, 1, 5, 34], 4), blocks(4));
    // No header has a list of 2 bytes, but the function takes any.
    assert_list("two bytes", &[4, 2], permitted);
}

#[test]
fn unknown_options_are_skipped() {
    let unknown = [28, 4, 0x80, 9, 254, 2, 3, 3, 1, 0, 0, 0];
    assert_list("unknown", &unknown, scale(1));
    assert_list("MSS of 3 bytes", &[2, 3, 9, 3, 3, 7, 0, 0], scale(7));
    assert_list("scale of 4 bytes", &[3, 4, 1, 1], NONE);
    assert_list("SACK permitted of 3 bytes", &[4, 3, 0, 1], NONE);
    let short_times = [8, 9, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0];
    assert_list("times of 9 bytes", &short_times, NONE);
    assert_list("no block", &[5, 2, 1, 1], NONE);
    assert_list("half a block", &[5, 6, 1, 1, 1, 1, 1, 1], NONE);
}

#[test]
fn an_illegal_length_ends_the_list() {
    let malformed = with(|options| options.malformed = true);
    assert_list("length 0", &[2, 0, 1, 1], malformed);
    assert_list("length 1", &[2, 1, 1, 1], malformed);
    assert_list("above the list", &[2, 5, 1, 1], malformed);
    assert_list("no length", &[1, 1, 1, 2], malformed);
    let before = with(|options| {
        options.window_scale = Some(2);
        options.malformed = true;
    });
    assert_list("options before hold", &[3, 3, 2, 9], before);
}

fn assert_layout(name: &str, options: Options, expected: &[u8]) {
    assert_eq!(options.len_bytes(), expected.len(), "{name}");
    let mut buffer = std::vec![0xee; expected.len()];
    let sum = options.fill(&mut buffer);
    assert_eq!(buffer, expected, "{name}");
    assert_eq!(sum.value(), Sum::of(expected).value(), "{name}");
}

#[test]
fn options_have_one_layout() {
    let permitted = with(|options| options.sack_permitted = true);
    let aligned = [&[1, 1], &STAMPS[..]].concat();
    let both = Options {
        sack_permitted: true,
        ..times()
    };
    assert_layout("none", NONE, &[]);
    assert_layout("MSS", mss(536), &[2, 4, 0x02, 0x18]);
    assert_layout("scale", scale(9), &[1, 3, 3, 9]);
    assert_layout("SACK permitted", permitted, &[1, 1, 4, 2]);
    assert_layout("times", times(), &aligned);
    assert_layout("both", both, &[&[4, 2], &STAMPS[..]].concat());
    assert_layout("one block", blocks(1), &block_bytes([1, 1, 5, 10], 1));
    assert_layout("four blocks", blocks(4), &block_bytes([1, 1, 5, 34], 4));
}

#[test]
fn the_last_blocks_are_left_out() {
    let sack = blocks(4).sack;
    let beside_times = Options { sack, ..times() };
    let three = block_bytes([1, 1, 5, 26], 3);
    let expected = [&[1, 1], &STAMPS[..], &three].concat();
    assert_layout("three beside times", beside_times, &expected);
    let all = Options {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        ..beside_times
    };
    let front = [&[2, 4, 0x05, 0xb4, 4, 2], &STAMPS[..], &[1, 3, 3, 7]].concat();
    let expected = [&front[..], &block_bytes([1, 1, 5, 18], 2)].concat();
    assert_layout("two beside all others", all, &expected);
}
