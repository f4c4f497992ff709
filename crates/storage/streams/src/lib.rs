//! Write-lifetime hints on the files of a database: rules, routes to the drive, labeller, check.
//!
//! Multi-stream SSDs and file systems that place data by lifetime keep bytes that die together in
//! the same erase block. [`rules`] map files to hints, [`labeller::run`] sets the hints on the
//! files, [`route`] finds out whether kernel, file system and drive use them, and
//! [`check`](check::check) compares the hints of all files with the rules.
//!
//! Deliberately absent: arguments and output (CLI), simulation and metering (other crates).

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
