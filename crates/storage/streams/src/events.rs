//! Parses fanotify events: new names in a directory, opens that wait for permission, overflows.
//!
//! Layout: `struct fanotify_event_metadata` and the records after it, fanotify(7). Every length is
//! checked.

use std::ffi::{OsStr, OsString, c_int};
use std::os::unix::ffi::OsStrExt as _;

use crate::sys::{HANDLE_LIMIT, Handle};

/// Size of `struct fanotify_event_metadata`: a buffer for one event without records.
pub(crate) const HEADER: usize = 24;
/// Size of a record before its file handle: header (4), file system ID (8).
const RECORD_HEADER: usize = 12;

/// A parsed event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The queue overflowed, so that events were dropped.
    Overflow,
    /// A file or directory was created with this name or moved to it.
    Named {
        dir: Handle,
        name: OsString,
        is_dir: bool,
    },
    /// Process `pid` waits to open a file. The reader must close the descriptor `file`.
    Opening {
        file: c_int,
        pid: c_int,
    },
    Other,
}

/// Parses the events in a buffer, up to the first invalid one.
pub(crate) fn read(mut buffer: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((event, rest)) = first(buffer) {
        events.push(event);
        buffer = rest;
    }
    events
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_ne_bytes(bytes)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn first(buffer: &[u8]) -> Option<(Event, &[u8])> {
    let len = usize::try_from(u32_at(buffer, 0)?).ok()?;
    let header_len = u16_at(buffer, 6)?;
    if len < HEADER || header_len < HEADER || header_len > len {
        return None;
    }
    let (whole, rest) = buffer.split_at_checked(len)?;
    let mask = u64::from_ne_bytes(whole.get(8..16)?.try_into().ok()?);
    let fd = i32_at(whole, 16)?;
    let event = if mask & libc::FAN_Q_OVERFLOW != 0 {
        Event::Overflow
    } else if mask & libc::FAN_OPEN_PERM != 0 {
        Event::Opening {
            file: fd,
            pid: i32_at(whole, 20)?,
        }
    } else {
        let is_dir = mask & libc::FAN_ONDIR != 0;
        named(whole.get(header_len..)?, is_dir).unwrap_or(Event::Other)
    };
    Some((event, rest))
}

/// Finds the record with directory and name among the records of one event.
fn named(mut records: &[u8], is_dir: bool) -> Option<Event> {
    loop {
        let kind = *records.first()?;
        let len = u16_at(records, 2)?;
        let (record, rest) = records
            .split_at_checked(len)
            .filter(|_| len >= RECORD_HEADER)?;
        records = rest;
        if kind != libc::FAN_EVENT_INFO_TYPE_DFID_NAME {
            continue;
        }
        let bytes = usize::try_from(u32_at(record, RECORD_HEADER)?).ok()?;
        let kind = i32_at(record, RECORD_HEADER + 4)?;
        let start = RECORD_HEADER + 8;
        let handle = record.get(start..start + bytes.min(HANDLE_LIMIT + 1))?;
        if handle.len() > HANDLE_LIMIT {
            return None;
        }
        let name = record
            .get(start + bytes..)?
            .split(|byte| *byte == 0)
            .next()?;
        return Some(Event::Named {
            dir: Handle {
                kind,
                bytes: handle.to_owned(),
            },
            name: OsStr::from_bytes(name).to_owned(),
            is_dir,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(mask: u64, fd: i32, records: &[u8]) -> Vec<u8> {
        let len = u32::try_from(HEADER + records.len()).unwrap();
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend([3, 0]);
        bytes.extend(24_u16.to_ne_bytes());
        bytes.extend(mask.to_ne_bytes());
        bytes.extend(fd.to_ne_bytes());
        bytes.extend(4711_i32.to_ne_bytes());
        bytes.extend(records);
        bytes
    }

    fn record(name: &str) -> Vec<u8> {
        let mut bytes = vec![libc::FAN_EVENT_INFO_TYPE_DFID_NAME, 0];
        let len = u16::try_from(RECORD_HEADER + 8 + 4 + name.len() + 1).unwrap();
        bytes.extend(len.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(4_u32.to_ne_bytes());
        bytes.extend(1_i32.to_ne_bytes());
        bytes.extend([1, 2, 3, 4]);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn events_are_read_one_after_the_other() {
        let mut bytes = event(libc::FAN_CREATE, -1, &record("ibdata1"));
        bytes.extend(event(libc::FAN_Q_OVERFLOW, -1, &[]));
        bytes.extend(event(libc::FAN_OPEN_PERM, 7, &[]));
        bytes.extend(event(
            libc::FAN_CREATE | libc::FAN_ONDIR,
            -1,
            &record("shop"),
        ));
        let named = |name: &str, is_dir| Event::Named {
            dir: Handle {
                kind: 1,
                bytes: vec![1, 2, 3, 4],
            },
            name: name.into(),
            is_dir,
        };
        assert_eq!(
            read(&bytes),
            [
                named("ibdata1", false),
                Event::Overflow,
                Event::Opening { file: 7, pid: 4711 },
                named("shop", true)
            ]
        );
    }

    proptest! {
        #[test]
        fn invalid_bytes_do_not_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..60,
        ) {
            let _ = read(&bytes);
            let whole = event(libc::FAN_CREATE, -1, &record("ibdata1"));
            let _ = read(&whole[..cut.min(whole.len())]);
            let mut bent = whole.clone();
            for (at, byte) in bytes.iter().enumerate().take(whole.len() - 8) {
                bent[at + 8] ^= byte;
            }
            let _ = read(&bent);
        }
    }
}
