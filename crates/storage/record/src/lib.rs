//! Records the block writes of a database: address, time and file of each.
//!
//! Events come from `saiga-blocktrace`. [`Recorder`] repeatedly scans the directories for the
//! extents of each file, assigns every event to a file, and writes the trace that `saiga-ftl`
//! reads. [`Volume`] is a file system in a file, for hosts whose drive must not be traced.
//!
//! Deliberately absent: the recorded program, signals, and output beyond errors (CLI).

mod backing;
mod clock;
mod events;
mod fiemap;
mod map;
mod output;
mod program;
mod recorder;
mod scan;
mod sync;
mod totals;
mod volume;

pub use backing::{BackingError, BackingVolume};
pub use output::OutputError;
pub use recorder::{Options, RecordError, Recorder};
pub use totals::{ByteCounts, HintBytes, Totals};
pub use volume::{FileSystem, Leftover, Volume, VolumeError, VolumeOptions, leftovers};
