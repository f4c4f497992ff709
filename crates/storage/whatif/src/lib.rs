//! What would streams gain? Rule sets on a recorded trace, rules suggested from it, and the report.
//!
//! [`measure`] says from a trace how long the bytes of each file live, [`suggest`] makes rules of that, [`sets`] joins any
//! rules with the names in a trace, [`compare`] simulates them all, also [`without`] some files,
//! [`directories`] says which database had which part in it, and [`document`] is what comes out,
//! for people.
//!
//! Deliberately absent: recording, printing and arguments; clocks and threads. The same input gives the same answer.

#![forbid(unsafe_code)]

pub mod compare;
pub mod directories;
pub mod document;
pub mod measure;
mod replays;
pub mod sets;
pub mod suggest;
pub mod without;
pub mod words;

pub use compare::{Condition, Run};
pub use replays::Replays;
pub use sets::{By, Joined, Set, SetError};
pub use suggest::Suggestion;
