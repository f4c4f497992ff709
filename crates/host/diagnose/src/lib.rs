//! From measurements to the one bottleneck that holds now, with its evidence.
//!
//! An [`observation::Observation`] holds what was measured; [`verdict::judge`] applies the rules of
//! [`rules`] to it and ranks their findings. The rules use the laws in [`law`]. Rules and laws read
//! no clock and no file; the readers of files are in [`source`].
//!
//! Deliberately absent: dashboards, and rules without a threshold that a source or a measurement
//! supports.

pub mod law;
pub mod observation;
pub mod page;
pub mod rule;
pub mod rules;
pub mod source;
mod text;
pub mod verdict;
