//! Readers of sources that give an observation or a part of one.

pub mod capture;
pub mod live;
pub mod load_csv;
pub mod perf_stat;
