//! Arms, pairs, runs and statistics.

pub mod result;
