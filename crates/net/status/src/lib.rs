//! The status page: a memfd in which a process shows the state of its connections.
//!
//! The library writes the page with atomic stores. `saiga status PID` opens the page through
//! `/proc/PID/fd`: the kernel checks the permission, and the page of an idle or stopped process
//! can be read as well as that of a busy one. See docs/adr/0001-status-page.md.
//!
//! The writing half uses no sockets, threads, allocation or std. The reading half (feature
//! `reader`) checks every value that it reads.
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
