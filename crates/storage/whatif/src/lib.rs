//! What would streams gain? Rule sets on a recorded trace, rules suggested from it, and the report.
//!
//! [`measure`] says from a trace how long the bytes of each file live, [`suggest`] makes rules of that, [`sets`] joins any
//! rules with the names in a trace, [`compare`] simulates them all, and [`document`] is what comes out, for people.
//!
//! Deliberately absent: recording, printing and arguments; clocks and threads. The same input gives the same answer.

#![forbid(unsafe_code)]

pub mod compare;
pub mod document;
pub mod measure;
pub mod sets;
pub mod suggest;
pub mod words;

pub use compare::{Condition, Run};
pub use sets::{By, Joined, Set, SetError};
pub use suggest::Suggestion;
