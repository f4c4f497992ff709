//! Write-lifetime hints for the files of a database: rules, routes to the device, a labeller, a check.
//!
//! A multi-stream SSD, and a file system that places by lifetime, keep bytes that die together in the same erase
//! block. [`rules`] say how long the bytes of a file live, [`labeller::run`] puts that on the files as hints, [`route`]
//! says whether hints reach anything here, [`check`](check::check) reads them back.
//!
//! Deliberately absent: printing and arguments (the CLI's), simulation and metering (crates of their own).

pub mod check;
pub mod control;
pub mod counters;
pub mod elsewhere;
mod events;
mod gate;
pub mod hint;
pub mod holder;
pub mod labeller;
pub mod labels;
mod links;
pub mod lock;
mod opened;
mod pins;
pub mod route;
pub mod rules;
pub mod setter;
mod sys;
pub mod traffic;
pub mod tree;
mod view;

pub use hint::Hint;
pub use rules::{Rules, RulesError};
