//! Encodes an entry as a line, and decodes lines.
//!
//! Each line begins with a check value (FNV-1a, 64 bits) of its text and the check value of the
//! previous line, so that changed, missing and moved lines are detected. Only the last line may be
//! incomplete, because each line is on the disk before the next one is written.

use std::io;

use serde::de::IgnoredAny;

use super::Entry;

/// The check value before the first line: FNV's offset basis.
pub(super) const START: u64 = 0xcbf2_9ce4_8422_2325;
/// The 64-bit prime of FNV-1a.
pub(super) const PRIME: u64 = 0x0100_0000_01b3;
const HEAD: &str = "{\"check\":\"";
const AFTER_CHECK: &str = "\",";
/// Hexadecimal digits of a check value.
const DIGITS: usize = 16;

/// A line with damage that neither this program nor a power failure causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// The decoded lines of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) entries: Vec<Entry>,
    /// Check value of the last complete line.
    pub(super) check: u64,
    /// Length of all complete lines in bytes.
    pub(super) length: usize,
}

/// Encodes `entry` as a line after a line with the check value `before`; also returns its own check
/// value.
pub(super) fn line(entry: &Entry, before: u64) -> io::Result<(String, u64)> {
    let text = serde_json::to_string(entry)?;
    let body = text.strip_prefix('{').unwrap_or(&text);
    let check = continued(before, body.as_bytes());
    Ok((format!("{HEAD}{check:016x}{AFTER_CHECK}{body}\n"), check))
}

/// Decodes all complete lines; an incomplete last line is left out.
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

/// The check value of `bytes` after a line with the check value `before`.
pub(super) fn continued(before: u64, bytes: &[u8]) -> u64 {
    let chained = before.to_le_bytes();
    chained.iter().chain(bytes).fold(START, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

/// The reason why a line cannot be decoded.
enum Flaw {
    /// Not complete JSON, as after a power failure.
    Torn,
    /// JSON with a wrong check value.
    Changed,
    /// A correct check value, but an unknown kind of entry.
    Unknown,
}

impl Flaw {
    fn reason(&self) -> &'static str {
        match self {
            Self::Torn => "the line is incomplete, but other lines follow",
            Self::Changed => {
                "its check value is wrong: the line was changed, or a line before it is missing"
            }
            Self::Unknown => "it was written by another version of saiga",
        }
    }
}

fn parsed(line: &[u8], before: u64) -> Result<(Entry, u64), Flaw> {
    let text = line.strip_suffix(b"\n").ok_or(Flaw::Torn)?;
    // Completeness is checked first, because an incomplete last line is not damage.
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
