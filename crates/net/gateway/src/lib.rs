//! The gateway serves remote clients of unmodified servers through Saiga's own TCP/IP stack.
//!
//! [`settings`] reads `gateway.toml` (`docs/gateway.md` explains each key). [`lstack`] translates
//! the `lstack.conf` of Gazelle into the same settings. Both read one file and do no other I/O:
//! what only the machine can tell is a list of [`settings::Need`]s. [`service`] puts a gateway
//! together; a [`Worker`] joins a stack, a queue of a packet device, and anchors. [`confine`] gives
//! up the rights of root before the first frame is served.

mod anchors;
pub mod confine;
pub mod file;
pub mod lstack;
pub mod service;
pub mod settings;
mod worker;

pub use worker::{Anchors, Clock, Memory, Opened, Parts, Stop, Worker, WorkerError};
