//! Simulates what streams would gain: rule sets on a recorded trace, rules suggested from it, and
//! the report.
//!
//! [`measure`] computes the lifetimes of the bytes of each file of a trace, [`suggest`] derives
//! rules from them, [`sets`] applies rules to the names in a trace, [`compare`] simulates rule
//! sets, also [`without`] some files, [`directories`] divides the result among databases, and
//! [`document`] formats the report.
//!
//! Deliberately absent: recording, printing and arguments; clocks and threads. The result is
//! deterministic.

#![forbid(unsafe_code)]

pub mod compare;
pub mod directories;
pub mod document;
pub mod format;
pub mod measure;
mod replays;
pub mod sets;
pub mod suggest;
pub mod without;

pub use compare::{Condition, Run};
pub use replays::Replays;
pub use sets::{By, Joined, Set, SetError};
pub use suggest::Suggestion;
