//! The write amplification meter: a drive's own counters, read at intervals, kept, and divided.
//!
//! A [`Drive`] answers with pages: [`live`] asks an NVMe drive, [`recorded`] a folder of files. [`identity`] says which
//! drive it is, [`source`] finds counters of host and flash writes among its pages and declares their granularity.
//! [`wear`] is what a drive says of the life that it has left. [`Watcher`] puts a [`Sample`] into a [`store`] each time it is asked; [`series`] makes segments and intervals of
//! samples, and [`report`] shows them. docs/waf.md is the user's side of it.
//!
//! Deliberately absent: clocks that wait, signals, and any command that changes a drive.

mod bytes;
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
mod room;
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
