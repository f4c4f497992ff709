//! pcap files: one header, one link type, records.

use std::io::Read;

use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, nom,
    pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header},
};

use super::{
    ReadError, Stop,
    input::{CAPACITY, Input},
};
use crate::{Analyser, Link, Packet, Timestamp};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const MICROSECOND_NS: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;

type Parse = fn(&[u8]) -> nom::IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

pub(super) fn read<R: Read>(
    input: &mut Input<R>,
    analyser: &mut Analyser,
) -> Result<Stop, ReadError> {
    let whole = input.fill(FILE_HEADER)?;
    let header = match parse_pcap_header(input.bytes()) {
        Ok((_, header)) if !header.is_modified_format() => header,
        Err(nom::Err::Incomplete(_)) if !whole && has_magic(input.bytes()) => {
            return Ok(Stop::CutShort);
        }
        Ok(_) | Err(_) => return Err(ReadError::NotACapture),
    };
    let link = link_of(&header)?;
    input.consume(FILE_HEADER);
    let big_endian = header.is_bigendian();
    let unit = if header.is_nanosecond_precision() {
        1
    } else {
        MICROSECOND_NS
    };
    let parse: Parse = if big_endian {
        parse_pcap_frame_be
    } else {
        parse_pcap_frame
    };
    loop {
        if !input.fill(RECORD_HEADER)? {
            let rest = input.bytes().len();
            return Ok(if rest == 0 { Stop::End } else { Stop::CutShort });
        }
        let length = captured_length(input.bytes(), big_endian);
        if length > CAPACITY - RECORD_HEADER {
            return Ok(Stop::Damaged);
        }
        if !input.fill(RECORD_HEADER + length)? {
            return Ok(Stop::CutShort);
        }
        let Ok((_, record)) = parse(input.bytes()) else {
            return Ok(Stop::Damaged);
        };
        let fraction = u64::from(record.ts_usec) * unit;
        analyser.packet(Packet {
            at: Timestamp(u64::from(record.ts_sec) * SECOND_NS + fraction),
            link,
            bytes: record.data,
            length: record.origlen,
        });
        input.consume(RECORD_HEADER + length);
    }
}

fn has_magic(head: &[u8]) -> bool {
    let magic = head.first_chunk::<4>();
    [[0xa1, 0xb2, 0xc3, 0xd4], [0xa1, 0xb2, 0x3c, 0x4d]]
        .iter()
        .any(|big: &[u8; 4]| {
            let mut little = *big;
            little.reverse();
            magic == Some(big) || magic == Some(&little)
        })
}

/// Bits above the lower 16 say how long the frame check sequence is.
fn link_of(header: &PcapHeader) -> Result<Link, ReadError> {
    let [low, high, ..] = header.network.0.to_le_bytes();
    let number = u16::from_le_bytes([low, high]);
    Link::of_number(number).ok_or(ReadError::LinkType { number })
}

fn captured_length(record: &[u8], big_endian: bool) -> usize {
    let bytes = [record[8], record[9], record[10], record[11]];
    let length = if big_endian {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    };
    usize::try_from(length).unwrap_or(usize::MAX)
}
