//! pcapng files: sections of interfaces, packets and statistics.

use std::io::Read;

use pcap_parser::{
    Block, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode, PcapNGOption,
    parse_block_be, parse_block_le,
};

use super::{
    ReadError, Stop,
    input::{CAPACITY, Input},
};
use crate::{Analyser, Interface, Link, Packet, Timestamp};

const BLOCK_HEADER: usize = 8;
/// Type, two lengths.
const SMALLEST_BLOCK: usize = 12;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_LITTLE: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
const BYTE_ORDER_BIG: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
const SECOND_NS: u128 = 1_000_000_000;
/// More interfaces than any host has; those behind are not looked at.
const MOST_INTERFACES: usize = 1_024;
const LONGEST_NAME: usize = 64;

/// How an interface's packets are read.
#[derive(Clone, Copy)]
struct Format {
    link: Result<Link, u16>,
    units_per_second: u128,
    offset_s: i64,
    /// Its place in the results.
    index: usize,
}

struct Sections<'a> {
    analyser: &'a mut Analyser,
    big_endian: bool,
    /// Those of the present section.
    formats: Vec<Format>,
    other_link: Option<u16>,
    analysed: u64,
}

pub(super) fn read<R: Read>(
    input: &mut Input<R>,
    analyser: &mut Analyser,
) -> Result<Stop, ReadError> {
    let mut sections = Sections {
        analyser,
        big_endian: false,
        formats: Vec::new(),
        other_link: None,
        analysed: 0,
    };
    let stop = sections.blocks(input)?;
    match sections.other_link {
        Some(number) if sections.analysed == 0 => Err(ReadError::LinkType { number }),
        Some(_) | None => Ok(stop),
    }
}

impl Sections<'_> {
    fn blocks<R: Read>(&mut self, input: &mut Input<R>) -> Result<Stop, ReadError> {
        loop {
            if !input.fill(SMALLEST_BLOCK)? {
                let rest = input.bytes().len();
                return Ok(if rest == 0 { Stop::End } else { Stop::CutShort });
            }
            let Some((kind, length)) = self.header(input.bytes()) else {
                return Ok(Stop::Damaged);
            };
            let is_ours = matches!(
                kind,
                SECTION_HEADER | INTERFACE | SIMPLE_PACKET | STATISTICS | ENHANCED_PACKET
            );
            if !is_ours {
                if !input.skip(length)? {
                    return Ok(Stop::CutShort);
                }
                continue;
            }
            if length > CAPACITY {
                return Ok(Stop::Damaged);
            }
            if !input.fill(length)? {
                return Ok(Stop::CutShort);
            }
            let parse = if self.big_endian {
                parse_block_be
            } else {
                parse_block_le
            };
            let Ok((_, block)) = parse(&input.bytes()[..length]) else {
                return Ok(Stop::Damaged);
            };
            self.block(&block);
            input.consume(length);
        }
    }

    /// Type and length of the next block. A section header says in which byte order it and all
    /// blocks behind it are written.
    fn header(&mut self, bytes: &[u8]) -> Option<(u32, usize)> {
        let kind_bytes = *bytes.first_chunk::<4>()?;
        if u32::from_le_bytes(kind_bytes) == SECTION_HEADER {
            let order = bytes.get(BLOCK_HEADER..)?.first_chunk::<4>()?;
            self.big_endian = *order == BYTE_ORDER_BIG;
            if !self.big_endian && *order != BYTE_ORDER_LITTLE {
                return None;
            }
        }
        let kind = self.number(kind_bytes);
        let length = usize::try_from(self.number(*bytes.get(4..)?.first_chunk::<4>()?)).ok()?;
        (length >= SMALLEST_BLOCK && length.is_multiple_of(4)).then_some((kind, length))
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn block(&mut self, block: &Block<'_>) {
        match block {
            Block::SectionHeader(_) => self.formats.clear(),
            Block::InterfaceDescription(interface) => self.interface(interface),
            Block::EnhancedPacket(packet) => {
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let captured = usize::try_from(packet.caplen).unwrap_or(usize::MAX);
                let bytes = &packet.data[..packet.data.len().min(captured)];
                self.packet(packet.if_id, units, bytes, packet.origlen);
            }
            Block::SimplePacket(_) => self.analyser.packet_without_time(),
            Block::InterfaceStatistics(statistics) => self.statistics(statistics),
            Block::NameResolution(_)
            | Block::SystemdJournalExport(_)
            | Block::DecryptionSecrets(_)
            | Block::ProcessInformation(_)
            | Block::Custom(_)
            | Block::Unknown(_) => {}
        }
    }

    fn interface(&mut self, block: &InterfaceDescriptionBlock<'_>) {
        if self.formats.len() == MOST_INTERFACES {
            return;
        }
        // A file has 16 bits for the link type.
        let number = u16::try_from(block.linktype.0).unwrap_or(u16::MAX);
        let offset = value(&block.options, OptionCode::IfTsoffset);
        let name = block
            .options
            .iter()
            .find(|option| option.code == OptionCode::IfName);
        let index = self.analyser.interface(Interface {
            name: name.and_then(name_of),
            link_type: number,
            ..Interface::default()
        });
        self.formats.push(Format {
            link: Link::of_number(number).ok_or(number),
            units_per_second: resolution(block),
            offset_s: offset.map_or(0, |bytes| {
                if self.big_endian {
                    i64::from_be_bytes(bytes)
                } else {
                    i64::from_le_bytes(bytes)
                }
            }),
            index,
        });
    }

    fn packet(&mut self, interface: u32, units: u64, bytes: &[u8], length: u32) {
        let place = usize::try_from(interface).unwrap_or(usize::MAX);
        let Some(format) = self.formats.get(place).copied() else {
            self.analyser.packet_of_unknown_interface();
            return;
        };
        self.analyser.seen_on(format.index);
        match format.link {
            Ok(link) => {
                self.analysed += 1;
                let at = format.time(units);
                self.analyser.packet(Packet {
                    at,
                    link,
                    bytes,
                    length,
                });
            }
            Err(number) => {
                self.other_link = Some(number);
                self.analyser.packet_of_other_link(number);
            }
        }
    }

    /// The counters grow over a capture: the last block has them all.
    fn statistics(&mut self, block: &InterfaceStatisticsBlock<'_>) {
        let place = usize::try_from(block.if_id).unwrap_or(usize::MAX);
        let Some(format) = self.formats.get(place) else {
            return;
        };
        let count = |code| {
            let bytes = value(&block.options, code)?;
            Some(if self.big_endian {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            })
        };
        let dropped = [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop].map(count);
        let dropped = match dropped {
            [None, None] => None,
            [interface, system] => Some(interface.unwrap_or(0).saturating_add(system.unwrap_or(0))),
        };
        self.analyser
            .statistics(format.index, count(OptionCode::IsbIfRecv), dropped);
    }
}

impl Format {
    fn time(&self, units: u64) -> Timestamp {
        let since = match self.units_per_second {
            1_000_000 => units.saturating_mul(1_000),
            SECOND_NS => units,
            other => {
                let ns = u128::from(units) * SECOND_NS / other;
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        let offset = self.offset_s.unsigned_abs().saturating_mul(1_000_000_000);
        Timestamp(if self.offset_s < 0 {
            since.saturating_sub(offset)
        } else {
            since.saturating_add(offset)
        })
    }
}

/// Units of a timestamp per second: a power of ten, or of two if the highest bit is set. Computed
/// here because pcap-parser 0.17 knows no powers of two.
fn resolution(block: &InterfaceDescriptionBlock<'_>) -> u128 {
    let exponent = u32::from(block.if_tsresol & 0x7f);
    let base = if block.if_tsresol & 0x80 == 0 {
        10_u128
    } else {
        2
    };
    base.checked_pow(exponent).unwrap_or(u128::MAX)
}

/// The first value of an option with eight bytes.
fn value(options: &[PcapNGOption<'_>], code: OptionCode) -> Option<[u8; 8]> {
    let option = options.iter().find(|option| option.code == code)?;
    option.as_bytes().ok()?.try_into().ok()
}

fn name_of(option: &PcapNGOption<'_>) -> Option<String> {
    let name = String::from_utf8_lossy(option.as_bytes().ok()?);
    Some(
        name.chars()
            .filter(|c| !c.is_control())
            .take(LONGEST_NAME)
            .collect(),
    )
}
