//! Channels: two byte rings in shared memory beside a kernel TCP connection, their segments,
//! doorbells and the rendezvous that sets them up.
//!
//! This crate knows no descriptor tables and no POSIX semantics, does not wait, and starts no
//! thread. It treats all data read from shared memory as hostile.

pub mod agreement;
pub mod crowd;
pub mod lock_word;
pub mod ring;
pub mod sleepers;
mod sync;
pub mod wait_slot;

#[cfg(not(loom))]
pub mod barriers;
#[cfg(not(loom))]
pub mod bell;
#[cfg(not(loom))]
pub mod bus_error;
#[cfg(not(loom))]
pub mod diag;
#[cfg(not(loom))]
pub mod direction;
#[cfg(not(loom))]
pub mod layout;
#[cfg(not(loom))]
pub mod own;
#[cfg(not(loom))]
pub mod rendezvous;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod state;
#[cfg(not(loom))]
pub mod sys;
#[cfg(not(loom))]
pub mod tuple;
