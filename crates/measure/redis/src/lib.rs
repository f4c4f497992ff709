//! The Redis workload. Saiga starts redis-servers, alone or as a topology, and redis-benchmark as
//! the load. Processes of this program write during fail-overs or hold idle connections.
//!
//! [`RedisWorkload`] implements the engine's workload; [`cells`] contains the cells of the default
//! and the full plan. Deliberately absent: servers that other programs started (except for
//! [`remote`]), and how connections are accelerated (see [`saiga_experiment::acceleration`]).

mod acceleration;
mod arm;
mod benchmark;
pub mod cells;
mod configuration;
mod converge;
pub mod counters;
mod failover;
mod fill;
mod fleet;
mod hits;
pub mod holder;
mod idle;
mod load;
mod ports;
pub mod remote;
mod resident;
mod resp;
pub mod seed;
mod server;
mod steps;
mod topology;
mod workload;
pub mod writer;

pub use arm::RedisArm;
pub use load::{RedisLoad, Test};
pub use topology::Topology;
pub use workload::{RedisTarget, RedisWorkload};
