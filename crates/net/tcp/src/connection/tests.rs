//! What scripts cannot show: the bytes of overlapping segments, of which the first copy stays, and
//! several segments before the answer to the first one leaves.

extern crate std;

use saiga_wire::SeqNum;
use saiga_wire::ip::Ports;
use saiga_wire::tcp::{Flags, Header, Options};
use std::vec::Vec;

use super::*;
use crate::config::Config;
use crate::counters::Counters;
use crate::time::Instant;

/// Initial number of the peer: its stream crosses the wrap.
const IRS: SeqNum = SeqNum(u32::MAX - 3);
const ISS: SeqNum = SeqNum(0);

/// A segment of the peer: offset in its stream, and bytes.
type Sample = (u32, &'static [u8]);

/// The receive buffer of an application that has read nothing.
struct Buffer<'a> {
    bytes: &'a mut Vec<u8>,
    payload: &'a [u8],
}

impl Place for Buffer<'_> {
    fn place(&mut self, from: u32, to: u32, length: u32) {
        let [from, to, length] = [from, to, length].map(|number| number as usize);
        if self.bytes.len() < to + length {
            self.bytes.resize(to + length, b'_');
        }
        self.bytes[to..to + length].copy_from_slice(&self.payload[from..from + length]);
    }
}

fn header(seq: SeqNum, flags: Flags) -> Header {
    let ports = Ports {
        source: 0,
        destination: 0,
    };
    Header {
        ports,
        seq,
        ack: Some(ISS + 1),
        flags,
        window: 8000,
        urgent: None,
        options: Options::NONE,
    }
}

fn connect(context: &mut Context<'_>) -> Connection {
    let start = Start {
        iss: ISS,
        timestamp_offset: 0,
        buffer: 1000,
    };
    Connection::connect(start, context)
}

/// Takes the segments in this order; returns the buffer, and how much of it is readable.
fn received(samples: &[Sample]) -> (Vec<u8>, u32) {
    let config = Config::default();
    let mut counters = Counters::default();
    let mut context = Context {
        now: Instant(1),
        config: &config,
        counters: &mut counters,
    };
    let mut connection = connect(&mut context);
    let mut bytes = Vec::new();
    let mut readable = 0;
    let syn = header(IRS, Flags::SYN);
    let data = samples
        .iter()
        .map(|(offset, payload)| (header(IRS + 1 + *offset, Flags::NONE), *payload));
    for (header, payload) in [(syn, &b""[..])].into_iter().chain(data) {
        let arrival = Arrival {
            header: &header,
            length: u32::try_from(payload.len()).unwrap(),
            is_congested: false,
        };
        let mut place = Buffer {
            bytes: &mut bytes,
            payload,
        };
        let events = connection.on_segment(&arrival, &mut place, &mut context);
        readable += events.readable;
    }
    (bytes, readable)
}

#[test]
fn the_first_copy_of_a_byte_stays() {
    for (name, samples, expected, readable) in [
        (
            "again, in order",
            &[(0, &b"abcd"[..]), (0, b"XXXXef")][..],
            "abcdef",
            6,
        ),
        (
            "above a hole, again",
            &[(4, b"efgh"), (4, b"XXXX"), (0, b"abcd")],
            "abcdefgh",
            8,
        ),
        (
            "around what has come",
            &[(2, b"cd"), (0, b"abXXef")],
            "abcdef",
            6,
        ),
        (
            "over two islands",
            &[(1, b"b"), (3, b"d"), (0, b"aXcXe")],
            "abcde",
            5,
        ),
        (
            "front of an island",
            &[(2, b"cdef"), (0, b"abXX")],
            "abcdef",
            6,
        ),
        (
            "end of an island, above a hole",
            &[(2, b"cd"), (3, b"Xef")],
            "__cdef",
            0,
        ),
        (
            "behind what was read in order",
            &[(0, b"abcdef"), (3, b"XXXgh"), (1, b"XXXXXXXi")],
            "abcdefghi",
            9,
        ),
    ] {
        let expected = (expected.as_bytes().to_vec(), readable);
        assert_eq!(received(samples), expected, "{name}");
    }
}

/// The limit of challenges is two in a second; the third segment must not take the answer back.
#[test]
fn a_challenge_above_the_limit_leaves_the_answers_before() {
    let config = Config::default();
    let mut counters = Counters::default();
    let mut context = Context {
        now: Instant(1),
        config: &config,
        counters: &mut counters,
    };
    let mut connection = connect(&mut context);
    let mut bytes = Vec::new();
    let mut take = |connection: &mut Connection, context: &mut Context<'_>, header: Header| {
        let arrival = Arrival {
            header: &header,
            length: 0,
            is_congested: false,
        };
        let mut place = Buffer {
            bytes: &mut bytes,
            payload: b"",
        };
        connection.on_segment(&arrival, &mut place, context)
    };
    let events = take(&mut connection, &mut context, header(IRS, Flags::SYN));
    assert!(events.is_established);
    while connection.transmit(0, &mut context).is_some() {}
    for _ in 0..3 {
        let events = take(&mut connection, &mut context, header(IRS + 5, Flags::RST));
        assert_eq!(events, Events::NONE);
    }
    let answer = connection.transmit(0, &mut context).unwrap();
    assert_eq!(answer.header.ack, Some(IRS + 1));
    assert_eq!(connection.transmit(0, &mut context), None);
    assert_eq!(counters.challenge_acks, 2);
    assert_eq!(counters.acks_skipped_challenge, 1);
}
