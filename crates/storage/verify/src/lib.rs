//! Checks that data of different lifetimes are kept apart in a server's directories.
//!
//! [`directory`] compares the hint of each file with its rule, and says whether hints reach the
//! drive. [`traffic`] follows the writes by hint, and [`handles`] the writes through the reclaim
//! unit handles of FDP namespaces, which [`placement`] finds. [`plan`] describes how to give each
//! kind of file its own namespace. Nothing is changed.

pub mod directory;
mod error;
pub mod handles;
pub mod placement;
pub mod plan;
pub mod traffic;

pub use error::VerifyError;

/// Advice after a permission error.
const AS_ROOT: &str = "; run this as root (or with CAP_DAC_READ_SEARCH)";
