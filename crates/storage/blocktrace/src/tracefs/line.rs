//! One line of `trace_pipe`, such as
//! `kworker/u8:2-77  [001] ...1.  12.345678: block_bio_queue: 7,0 WS 2048 + 8 [kworker/u8:2]`.
//!
//! Kernel: include/trace/events/block.h, blk_fill_rwbs() in kernel/trace/blktrace.c.

use crate::device::Device;
use crate::event::{Event, Operation};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A write or a discard.
    Event(Event),
    /// A line that is skipped: a read, a flush, or the kernel's note about lost events.
    Other,
    /// A line in an unknown format.
    Invalid,
}

/// Parses a line without its newline.
pub(super) fn read(line: &str) -> Line {
    if line.is_empty() || line.starts_with('#') || line.starts_with("CPU:") {
        return Line::Other;
    }
    parse(line).unwrap_or(Line::Invalid)
}

fn parse(line: &str) -> Option<Line> {
    let (head, tail) = line.split_once(": block_bio_queue: ")?;
    let (head, time) = head.rsplit_once(' ')?;
    let mut fields = tail.split(' ');
    let device = device(fields.next()?)?;
    let flags = fields.next()?;
    let sector: u64 = fields.next()?.parse().ok()?;
    if fields.next()? != "+" {
        return None;
    }
    let sectors: u64 = fields.next()?.parse().ok()?;
    let Some(operation) = operation(flags).filter(|_| sectors != 0) else {
        return Some(Line::Other);
    };
    Some(Line::Event(Event {
        t_ns: nanoseconds(time)?,
        device,
        address: sector.checked_mul(512)?,
        len: sectors.checked_mul(512)?,
        operation,
        hint: None,
        is_metadata: flags.contains('M'),
        pid: pid(head),
    }))
}

/// Parses `7,0`.
fn device(text: &str) -> Option<Device> {
    let (major, minor) = text.split_once(',')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Parses the operation and flags of blk_fill_rwbs(). An `F` before the operation is a flush before
/// the write. Flags after the operation are skipped, except the `U` of Linux 6.17: zeroes that may
/// be unmapped. Earlier kernels write `N` for zeroes and for any unknown operation.
fn operation(flags: &str) -> Option<Operation> {
    let flags = flags.strip_prefix('F').unwrap_or(flags);
    match flags.as_bytes() {
        [b'W', b'Z', b'U', ..] | [b'D' | b'N', ..] => Some(Operation::Discard),
        [b'W', ..] | [b'Z', b'A', ..] => Some(Operation::Write),
        _ => None,
    }
}

/// Parses `12.345678`, a time in seconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let (seconds, micro): (u64, u64) = (seconds.parse().ok()?, fraction.parse().ok()?);
    if fraction.len() != 6 {
        return None;
    }
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(micro * 1000)
}

/// Parses the number after the thread's name, which may itself contain spaces and dashes.
fn pid(head: &str) -> Option<u32> {
    let (thread, _) = head.rsplit_once(" [")?;
    thread.trim_end().rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(operation: Operation) -> Line {
        Line::Event(sample(operation))
    }

    fn metadata() -> Line {
        Line::Event(Event {
            is_metadata: true,
            ..sample(Operation::Write)
        })
    }

    fn sample(operation: Operation) -> Event {
        Event {
            t_ns: 12_345_678_000,
            device: Device { major: 7, minor: 3 },
            address: 2048 * 512,
            len: 4096,
            operation,
            hint: None,
            is_metadata: false,
            pid: Some(77),
        }
    }

    #[test]
    fn flags_distinguish_writes_from_discards() {
        for (flags, expected) in [
            ("WS", event(Operation::Write)),
            ("FWFS", event(Operation::Write)),
            ("FWFSM", metadata()),
            ("ZA", event(Operation::Write)),
            ("WZ", event(Operation::Write)),
            ("WZU", event(Operation::Discard)),
            ("D", event(Operation::Discard)),
            ("DE", event(Operation::Discard)),
            ("NS", event(Operation::Discard)),
            ("R", Line::Other),
            ("FF", Line::Other),
            ("F", Line::Other),
            ("ZR", Line::Other),
        ] {
            let line = format!(
                "   kworker/u8:2-77      [001] ...1.    12.345678: block_bio_queue: \
                 7,3 {flags} 2048 + 8 [kworker/u8:2]"
            );
            assert_eq!(read(&line), expected, "{flags}");
        }
    }

    #[test]
    fn a_thread_name_with_brackets_and_dashes_is_parsed() {
        let line = "a [1] b-2 [000]-77  [001] ...1. 12.345678: block_bio_queue: \
                    7,3 W 2048 + 8 [a [1] b-2 [000]]";
        assert_eq!(read(line), event(Operation::Write));
    }

    #[test]
    fn other_lines_are_skipped_or_invalid() {
        for (line, expected) in [
            ("", Line::Other),
            ("# tracer: nop", Line::Other),
            ("CPU:1 [LOST 17 EVENTS]", Line::Other),
            (
                "x-1 [001] ...1. 1.000000: block_bio_queue: 7,3 FWS 0 + 0 [x]",
                Line::Other,
            ),
            (
                "x-1 [001] ...1. 1.000000: block_rq_issue: 7,3",
                Line::Invalid,
            ),
            (
                "x-1 [001] ...1. 1.0: block_bio_queue: 7,3 W 1 + 1 [x]",
                Line::Invalid,
            ),
            (
                "x-1 [001] ...1. 1.000000: block_bio_queue: 7,3 W 99999999999999999999 + 1 [x]",
                Line::Invalid,
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
