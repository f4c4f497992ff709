//! One look at a drive's counters.

use std::fmt;

use crate::moment::Moment;
use crate::source::{Counters, Source, Steps};
use crate::wear::Wear;

/// What makes two samples those of one drive, whatever the kernel calls it after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriveId {
    /// Model number.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// The endurance group that was looked at, on drives that report groups.
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

/// Counters of a drive at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub taken: Moment,
    /// What the drive was called.
    pub path: String,
    /// Which drive.
    pub drive: DriveId,
    /// Its firmware.
    pub firmware: String,
    /// Where the counters came from.
    pub source: Source,
    /// How finely they counted, as declared when they were read.
    pub steps: Steps,
    /// The counters.
    pub counters: Counters,
    /// How far the drive was worn; `None` where it did not say, and in samples of older releases.
    pub wear: Option<Wear>,
}

/// A text that steers no terminal, as all texts of samples are.
pub(crate) fn plain(text: &str) -> String {
    let letter = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(letter).collect()
}
