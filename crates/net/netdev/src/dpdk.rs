//! Ports of DPDK: cards that the kernel does not have, and virtual devices.
//!
//! Source: the DPDK Programmer's Guide, version 22.11. A library in C, `dpdk/plugin.c`, calls DPDK;
//! it is loaded at run time, so that nothing else needs DPDK. [`Dpdk`] begins DPDK once for the
//! process, and opens ports, whose queues are [`Device`](crate::Device)s.
//!
//! Deliberately absent: interrupts of receive queues, which no driver without hardware has. A timer
//! looks for frames instead (`pace.rs`). Absent, too: merging of received segments (LRO).

mod card;
mod eal;
mod error;
mod offload;
mod pace;
mod plugin;
mod port;
mod queue;
mod raw;

pub use card::candidates;
pub use eal::{Dpdk, Memory, Settings};
pub use error::DpdkError;
pub use plugin::Plugin;
pub use port::{Options, Which};
pub use queue::Queue;
