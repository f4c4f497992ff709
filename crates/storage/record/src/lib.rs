//! Records what a database writes: every block, when, and to which of its files.
//!
//! Events come from `saiga-blocktrace`; [`Recorder`] scans the directories again and again for where each file lies,
//! gives every event to its file, and writes the trace that `saiga-ftl` reads. [`Volume`] is a file system in a file, for
//! machines whose drive shall not be traced.
//!
//! Deliberately absent: the program whose writes are recorded, signals, words for people beyond errors (the CLI's).

mod clock;
mod events;
mod fiemap;
mod ground;
mod map;
mod output;
mod program;
mod recorder;
mod scan;
mod sync;
mod tally;
mod volume;

pub use ground::{Ground, GroundError};
pub use output::OutputError;
pub use recorder::{Options, RecordError, Recorder};
pub use tally::{Hinted, Tally, Written};
pub use volume::{FileSystem, Leftover, Volume, VolumeError, VolumeOptions, leftovers};
