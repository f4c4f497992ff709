//! What a run leaves behind: a record, files as BenchmarkSQL writes them, and a page.
//!
//! A [`Record`] holds everything; the other files and the text are made from it, and
//! records of several load hosts are added to one.

pub mod clocks;
pub mod closing;
pub mod detail;
pub mod deviations;
pub mod directory;
mod evidence;
pub mod files;
pub mod merge;
mod notices;
pub mod page;
pub mod partial;
pub mod record;
pub mod validity;

pub use directory::{Directory, DirectoryError};
pub use merge::{MergeError, merge};
pub use record::{Conditions, Record};

#[cfg(test)]
mod tests;
