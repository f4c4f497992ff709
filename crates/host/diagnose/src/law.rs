//! The laws that the rules apply, as functions of numbers.
//!
//! Notation: `N` clients, `X` requests per second, `R` response time, `Z` time outside the measured
//! path. No rule and no threshold is here.

pub mod groups;
pub mod little;
pub mod numa;
pub mod ports;
pub mod tail;
pub mod usl;
