//! The Redis workload: private redis-servers under test, alone or joined, redis-benchmark
//! as load, and processes of our own that write through fail-overs or hold idle connections.
//!
//! [`RedisWorkload`] plugs into the experiment engine; [`cells`] holds the default and
//! the full plan. Deliberately absent: any server that we did not start, and any
//! knowledge of how a connection is accelerated (see [`saiga_experiment::acceleration`]).

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
