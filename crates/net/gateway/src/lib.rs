//! The gateway serves remote clients of unmodified servers through Saiga's own TCP/IP stack.
//!
//! [`settings`] reads `gateway.toml` (`docs/gateway.md` explains each key). [`lstack`] translates
//! the `lstack.conf` of Gazelle into the same settings. Both read one file and do no other I/O:
//! what only the machine can tell is a list of [`settings::Need`]s. [`service`] puts a gateway
//! together; a [`Worker`] joins a stack, queues of a packet device, and anchors. [`requirements`]
//! checks whether the needs are met, and [`provision`] meets those of DPDK. [`control`] and the
//! metrics show a running gateway. [`confine`] gives up root before the first frame is served.

mod anchors;
pub mod confine;
pub mod control;
mod ending;
pub mod file;
mod inspection;
pub mod lstack;
mod metrics;
mod observer;
pub mod provision;
mod random;
pub mod requirements;
mod seats;
pub mod service;
pub mod settings;
mod socket;
mod timed;
mod worker;

pub use inspection::InspectionError;
pub use seats::Seat;
pub use socket::OpenError;
pub use worker::{
    Anchor, Anchors, AskError, Clock, Handle, Latency, Memory, OnUnresolved, Opened, Opener, Page,
    Parts, Report, Rings, Shown, Times, Worker, WorkerError,
};
