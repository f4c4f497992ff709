//! The write amplification meter: reads a drive's own counters at intervals, stores them, and
//! computes the factor.
//!
//! A [`Drive`] returns pages: [`live`] reads an NVMe drive, [`recorded`] a directory of files.
//! [`identity`] identifies the drive, [`source`] finds counters of host and flash writes in its
//! pages and their granularity, [`wear`] reads its health. [`Watcher`] takes a [`Sample`] and puts
//! it into a [`store`]; [`series`] divides samples into segments and intervals, and [`report`]
//! formats them. User documentation: docs/waf.md.
//!
//! Deliberately absent: timers, signals, and commands that change a drive.

mod bytes;
mod disk_space;
pub mod drive;
pub mod identity;
pub mod live;
mod lock;
pub mod moment;
pub mod page;
pub mod placement;
mod ratio;
pub mod recorded;
pub mod report;
pub mod sample;
pub mod series;
pub mod source;
mod status;
pub mod store;
mod sys;
mod watch;
pub mod wear;

pub use drive::{Drive, ReadError, open};
pub use lock::LockError;
pub use ratio::{Waf, Written};
pub use sample::{DriveId, Sample};
pub use watch::{WatchError, Watcher};
pub use wear::Wear;
