//! Snapshots of data directories, so that every run of an experiment begins with the same data.
//!
//! [`take()`] copies the directories of a stopped server ("parts") into a snapshot; [`restore()`]
//! gives them their old content and writes only what differs; [`verify()`] reads a snapshot back.
//! No function copies or replaces the files of a running server ([`check_not_running`]). An
//! interrupted take leaves no snapshot. An interrupted restore leaves a mark ([`check_ready`]), so
//! that no server is started before the restore is complete. Files share extents (reflink) if the
//! file system supports it.
//!
//! Deliberately absent: servers that cannot be stopped. A workload that knows the tables restores
//! their data by SQL.

mod caches;
mod compare;
mod content;
mod disk;
mod handle;
mod hash;
mod journal;
mod links;
mod manifest;
mod name;
mod options;
mod parts;
mod pool;
mod progress;
mod restore;
mod running;
mod scan;
mod snapshot;
mod span;
mod stat;
mod store;
mod take;
mod tree;
mod verify;

pub use caches::{DropError, drop_caches};
pub use compare::Difference;
pub use disk::Fault;
pub use journal::{NotReady, check_ready};
pub use links::{ExternalLink, linked_files};
pub use manifest::ManifestError;
pub use options::{Check, LinkedFiles, Options, Reflink};
pub use parts::PartError;
pub use progress::{Phase, Progress, Report};
pub use restore::{DisplayPath, RestoreError, Restored, restore};
pub use running::{Evidence, InUse, Unseen, check_not_running};
pub use snapshot::{OpenError, Snapshot};
pub use store::StoreError;
pub use take::{TakeError, take};
pub use verify::{Damage, VerifyError, compare_parts, verify};

#[cfg(test)]
mod tests;
