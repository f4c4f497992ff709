//! The Redis workload.
