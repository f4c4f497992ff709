//! The status page: a memfd in which a process shows what is accelerated.
//!
//! The library writes it with plain atomic stores; `saiga status PID` opens it
//! through `/proc/PID/fd`, so the kernel decides who may look, and an idle or
//! stopped process answers as well as a busy one. See docs/adr/0001-status-page.md.
//!
//! Deliberately absent: sockets, threads, allocation and std in the writing half;
//! trust in what it reads in the reading half (feature `reader`).
#![cfg_attr(not(any(feature = "reader", test)), no_std)]

mod layout;
mod page;
mod reason;
mod state;

#[cfg(feature = "reader")]
pub mod reader;

pub use layout::{Entry, Flags, Header, MAX_ENTRIES};
pub use page::StatusPage;
pub use reason::Reason;
pub use saiga_channel::sys::Errno;
pub use state::State;
