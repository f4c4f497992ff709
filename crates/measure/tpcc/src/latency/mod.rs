//! Statistics of a run: counts and latencies by type and phase, a time series, gaps in service, and
//! the detection of a steady state.
//!
//! All statistics can be written to a file and added to the statistics of another load host. The
//! result of a run on several hosts is therefore the sum of the results of the hosts. Deliberately
//! absent: threads and clocks (`driver`).

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
