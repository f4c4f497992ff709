//! The gateway: remote clients of unmodified servers, through a TCP/IP stack of its own.

mod worker;

pub use worker::{Anchors, Clock, Opened, Parts, Stop, Worker, WorkerError};
