//! The results of a run: a record, files in BenchmarkSQL's formats, and a report.
//!
//! The [`Record`] contains all results; the other files and the printed text are derived from it.
//! `merge` combines the records of several load hosts into one.

pub mod clocks;
pub mod closing;
mod consistency;
pub mod detail;
pub mod deviations;
pub mod directory;
mod early_end;
pub mod files;
pub mod merge;
mod notices;
pub mod page;
pub mod partial;
pub mod record;
mod report_details;
pub mod several;
pub mod validity;

pub use directory::{Directory, DirectoryError};
pub use merge::{MergeError, merge};
pub use record::{Conditions, Record};

#[cfg(test)]
mod tests;
