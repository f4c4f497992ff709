//! What is made of the transactions of a run: counts and latencies by type and phase, a series of
//! seconds, gaps, and whether the system had settled.
//!
//! Everything here can be written to a file and added to the same of another load host: a run on
//! several hosts is the sum of its parts. Deliberately absent: threads and clocks (`driver`).

pub mod gaps;
pub mod histogram;
pub mod ledger;
pub mod series;
pub mod steady;
pub mod track;

pub use gaps::Gap;
pub use histogram::Latencies;
pub use ledger::Ledger;
pub use series::{Second, Series};
pub use track::{Phase, Tally, Track, TrackName};
