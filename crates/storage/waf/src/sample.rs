//! A sample of a drive's counters.

use std::fmt;

use crate::moment::Moment;
use crate::source::{Counters, Source, Steps};
use crate::wear::Wear;

/// The identity of a drive, independent of the kernel's name, which may change at a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriveId {
    pub model: String,
    pub serial: String,
    /// The measured endurance group, if the drive reports groups.
    pub group: Option<u16>,
}

impl fmt::Display for DriveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.model, self.serial)?;
        match self.group {
            Some(group) => write!(f, " endurance group {group}"),
            None => Ok(()),
        }
    }
}

/// The counters of a drive at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub taken: Moment,
    /// The path of the drive at that time.
    pub path: String,
    pub drive: DriveId,
    pub firmware: String,
    pub source: Source,
    /// The granularity of the counters, as declared by the source at that time.
    pub steps: Steps,
    pub counters: Counters,
    /// The wear of the drive; `None` if it was not reported, and in samples of older releases.
    pub wear: Option<Wear>,
}

/// Replaces control characters by `?`. All texts of samples are without them.
pub(crate) fn plain(text: &str) -> String {
    let letter = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(letter).collect()
}
