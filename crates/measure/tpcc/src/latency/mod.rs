//! Statistics of a run: counts and latencies by type and phase, a time series, gaps in service,
//! and the detection of a steady state.
//!
//! All of it can be written to a file and added to the statistics of another load host, so that a
//! run on several hosts is the sum of its parts. Deliberately absent: threads and clocks
//! (`driver`).

pub mod gaps;
pub mod histogram;
pub mod series;
pub mod statistics;
pub mod steady;
pub mod track;

pub use gaps::Gap;
pub use histogram::Latencies;
pub use series::{Second, Series};
pub use statistics::RunStatistics;
pub use track::{InputCounts, Phase, Track, TrackName};
