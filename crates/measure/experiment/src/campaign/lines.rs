//! One entry as one line, and back.
//!
//! Each line begins with a check (FNV-1a, 64 bits) over its own text and the check of the line
//! before, so that a changed, missing or moved line shows. Only the last line may be torn: every
//! line was on the disk before the next one was begun.

use std::io;

use serde::de::IgnoredAny;

use super::Entry;

/// The check before the first line: FNV's offset basis.
pub(super) const START: u64 = 0xcbf2_9ce4_8422_2325;
/// FNV's prime.
pub(super) const PRIME: u64 = 0x0100_0000_01b3;
const HEAD: &str = "{\"check\":\"";
const AFTER_CHECK: &str = "\",";
/// Digits of a check.
const DIGITS: usize = 16;

/// A line that neither this program nor a power cut leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// What a file holds.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) entries: Vec<Entry>,
    /// Of the last whole line.
    pub(super) check: u64,
    /// Bytes of all whole lines.
    pub(super) length: usize,
}

/// `entry` as a line that follows one with the check `before`, and its own check.
pub(super) fn line(entry: &Entry, before: u64) -> io::Result<(String, u64)> {
    let text = serde_json::to_string(entry)?;
    let body = text.strip_prefix('{').unwrap_or(&text);
    let check = continued(before, body.as_bytes());
    Ok((format!("{HEAD}{check:016x}{AFTER_CHECK}{body}\n"), check))
}

/// Reads every whole line; a torn one at the end is left out.
pub(super) fn read(bytes: &[u8]) -> Result<Contents, Damage> {
    let mut contents = Contents {
        entries: Vec::new(),
        check: START,
        length: 0,
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(length);
        match parsed(line, contents.check) {
            Ok((entry, check)) => {
                contents.entries.push(entry);
                contents.check = check;
                contents.length += length;
            }
            Err(Flaw::Torn) if after.is_empty() => break,
            Err(flaw) => {
                return Err(Damage {
                    line: contents.entries.len() + 1,
                    reason: flaw.reason().to_owned(),
                });
            }
        }
        rest = after;
    }
    Ok(contents)
}

/// `bytes` added to what led to the check `before`.
pub(super) fn continued(before: u64, bytes: &[u8]) -> u64 {
    let chained = before.to_le_bytes();
    chained.iter().chain(bytes).fold(START, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

/// What is wrong with a line.
enum Flaw {
    /// Not JSON to its end: the power went.
    Torn,
    /// JSON, with another check.
    Changed,
    /// Rightly checked, and not one of ours.
    Unknown,
}

impl Flaw {
    fn reason(&self) -> &'static str {
        match self {
            Self::Torn => "it is cut off, and others follow",
            Self::Changed => "its check is wrong: it was changed, or a line before it is missing",
            Self::Unknown => "it was written by another version of saiga",
        }
    }
}

fn parsed(line: &[u8], before: u64) -> Result<(Entry, u64), Flaw> {
    let text = line.strip_suffix(b"\n").ok_or(Flaw::Torn)?;
    // Whether it is whole is asked before whether it is right: only the last line may be torn.
    serde_json::from_slice::<IgnoredAny>(text).map_err(|_| Flaw::Torn)?;
    let text = std::str::from_utf8(text).map_err(|_| Flaw::Torn)?;
    let (check, body) = text
        .strip_prefix(HEAD)
        .and_then(|text| text.split_at_checked(DIGITS))
        .and_then(|(check, rest)| Some((check, rest.strip_prefix(AFTER_CHECK)?)))
        .ok_or(Flaw::Changed)?;
    let wanted = continued(before, body.as_bytes());
    if u64::from_str_radix(check, 16) != Ok(wanted) {
        return Err(Flaw::Changed);
    }
    let entry = serde_json::from_str(&format!("{{{body}")).map_err(|_| Flaw::Unknown)?;
    Ok((entry, wanted))
}
