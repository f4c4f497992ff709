//! Bulk transfers of the TCP engine over modelled paths.
//!
//! - `cells`: the paths of the comparison
//! - `flow`: one end of a connection, whose application always writes or always reads
//! - `world`: flows that share a bottleneck, in simulated time
//! - `theory`: what models of TCP expect, to compare with
//! - `figures`: medians and Jain's index
//!
//! Goodput is the bytes that arrive in order, without headers, in a second.

#![forbid(unsafe_code)]

pub mod cells;
pub mod figures;
pub mod flow;
pub mod theory;
pub mod world;
