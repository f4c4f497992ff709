//! Data directories put away and brought back: every run of an experiment begins with the same data.
//!
//! [`take()`] copies stopped directories ("parts") into a snapshot; [`restore()`] makes them what they
//! were, writing no more than what differs; [`verify()`] reads a snapshot back. Nothing is copied
//! from under a running server or replaced under one ([`check_not_running`]); an interrupted take
//! is not a snapshot, and an interrupted restore keeps a server from its data ([`check_ready`]) until
//! it is finished. Files share extents (reflink) where the file system can.
//!
//! Deliberately absent: servers that cannot be stopped. Their data are brought back by SQL, which
//! is the affair of the workload that knows the tables.

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
pub use links::{Stray, linked_files};
pub use manifest::ManifestError;
pub use options::{Check, LinkedFiles, Options, Reflink};
pub use parts::PartError;
pub use progress::{Phase, Progress, Report};
pub use restore::{PathShown, RestoreError, Restored, restore};
pub use running::{Evidence, InUse, Unseen, check_not_running};
pub use snapshot::{OpenError, Snapshot};
pub use store::StoreError;
pub use take::{TakeError, take};
pub use verify::{Damage, VerifyError, compare_parts, verify};

#[cfg(test)]
mod tests;
