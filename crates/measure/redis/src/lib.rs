//! The Redis workload: private redis-servers under test, redis-benchmark as load.
//!
//! [`RedisWorkload`] plugs into the experiment engine; [`cells`] holds the default and
//! the full plan. Deliberately absent: any server that we did not start, and any
//! knowledge of how a connection is accelerated (see [`saiga_experiment::acceleration`]).

mod acceleration;
mod arm;
mod benchmark;
pub mod cells;
mod load;
mod resp;
mod server;
mod workload;

pub use arm::RedisArm;
pub use load::{RedisLoad, Test};
pub use workload::{RedisTarget, RedisWorkload};
