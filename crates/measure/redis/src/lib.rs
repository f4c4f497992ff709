//! The Redis workload: redis-servers that Saiga starts, alone or as a topology; redis-benchmark as
//! load; processes of this program that write during fail-overs or hold idle connections.
//!
//! [`RedisWorkload`] implements the engine's workload; [`cells`] contains the default and the full
//! plan. Deliberately absent: servers that other programs started (except [`remote`]), and how
//! connections are accelerated (see [`saiga_experiment::acceleration`]).

mod acceleration;
mod arm;
mod benchmark;
pub mod cells;
mod configuration;
mod converge;
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
