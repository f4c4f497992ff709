//! One line of `trace_pipe`: `kworker/u8:2-77  [001] ...1.  12.345678: block_bio_queue: 7,0 WS 2048 + 8 [kworker/u8:2]`
//!
//! Kernel: include/trace/events/block.h, blk_fill_rwbs() in kernel/trace/blktrace.c.

use crate::device::Device;
use crate::event::{Event, Operation};

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A write or a discard.
    Event(Event),
    /// Something that is told to nobody: a read, a flush, the kernel's word that events are missing.
    Other,
    /// No line that the kernel writes.
    Nonsense,
}

/// Reads a line without its end.
pub(super) fn read(line: &str) -> Line {
    if line.is_empty() || line.starts_with('#') || line.starts_with("CPU:") {
        return Line::Other;
    }
    parse(line).unwrap_or(Line::Nonsense)
}

fn parse(line: &str) -> Option<Line> {
    let (head, tail) = line.split_once(": block_bio_queue: ")?;
    let (head, time) = head.rsplit_once(' ')?;
    let mut words = tail.split(' ');
    let device = device(words.next()?)?;
    let marks = words.next()?;
    let sector: u64 = words.next()?.parse().ok()?;
    if words.next()? != "+" {
        return None;
    }
    let sectors: u64 = words.next()?.parse().ok()?;
    let Some(operation) = operation(marks).filter(|_| sectors != 0) else {
        return Some(Line::Other);
    };
    Some(Line::Event(Event {
        t_ns: nanoseconds(time)?,
        device,
        address: sector.checked_mul(512)?,
        len: sectors.checked_mul(512)?,
        operation,
        hint: None,
        is_metadata: marks.contains('M'),
        pid: pid(head),
    }))
}

/// `7,0`
fn device(text: &str) -> Option<Device> {
    let (major, minor) = text.split_once(',')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// What the marks say is done. A flush before it comes first; what is behind the operation does not matter, except
/// that zeroes say from Linux 6.17 on whether they may unmap. Before, they have the mark of everything unknown.
fn operation(marks: &str) -> Option<Operation> {
    let marks = marks.strip_prefix('F').unwrap_or(marks);
    match marks.as_bytes() {
        [b'W', b'Z', b'U', ..] | [b'D' | b'N', ..] => Some(Operation::Discard),
        [b'W', ..] | [b'Z', b'A', ..] => Some(Operation::Write),
        _ => None,
    }
}

/// `12.345678` in seconds.
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

/// The number behind the name of the thread, which may have blanks and dashes itself.
fn pid(head: &str) -> Option<u32> {
    let (thread, _) = head.rsplit_once(" [")?;
    thread.trim_end().rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(operation: Operation) -> Line {
        Line::Event(told(operation))
    }

    fn metadata() -> Line {
        Line::Event(Event {
            is_metadata: true,
            ..told(Operation::Write)
        })
    }

    fn told(operation: Operation) -> Event {
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
    fn marks_tell_writes_from_discards() {
        for (marks, expected) in [
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
                "   kworker/u8:2-77      [001] ...1.    12.345678: block_bio_queue: 7,3 {marks} 2048 + 8 [kworker/u8:2]"
            );
            assert_eq!(read(&line), expected, "{marks}");
        }
    }

    #[test]
    fn names_of_threads_hide_nothing() {
        let line = "a [1] b-2 [000]-77  [001] ...1. 12.345678: block_bio_queue: 7,3 W 2048 + 8 [a [1] b-2 [000]]";
        assert_eq!(read(line), event(Operation::Write));
    }

    #[test]
    fn other_lines_are_other_or_nonsense() {
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
                Line::Nonsense,
            ),
            (
                "x-1 [001] ...1. 1.0: block_bio_queue: 7,3 W 1 + 1 [x]",
                Line::Nonsense,
            ),
            (
                "x-1 [001] ...1. 1.000000: block_bio_queue: 7,3 W 99999999999999999999 + 1 [x]",
                Line::Nonsense,
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
