//! POSIX semantics over anchors and channels: the descriptor table, evidence and upgrade, receiving
//! and sending, readiness, blocking, and closing.
//!
//! A connection's descriptor is, and stays, the kernel's TCP socket (its anchor). This crate
//! decides call by call whether the kernel or the channel serves it. It starts no thread, allocates
//! nothing in the caller's heap, and installs no signal handler, except one for SIGBUS where
//! vm.overcommit_memory is 2.

mod allowance;
mod anchor_events;
mod api;
mod asleep;
mod chan;
mod chaos;
mod clock;
mod close;
pub mod deep_bound;
mod epoll;
mod epoll_wait;
pub mod fork;
mod fork_group;
mod gather;
mod idle;
mod iov;
mod kernel;
mod leaving;
mod links;
mod lock;
mod memory;
pub mod namespaces;
mod nonblock;
mod offers;
mod pace;
mod policy;
pub mod poll;
mod pool;
mod process;
mod readiness;
mod recv;
mod reserve;
mod reset;
mod rt;
mod send;
mod settings;
mod signals_blocked;
mod sock;
mod start;
mod state;
mod table;
mod tcp_use;
mod thread;
mod thread_bells;
mod upgrade;
pub mod uring;
mod wait;

pub use api::*;
pub use close::{Closing, before_close};
pub use epoll_wait::KernelWait;
pub use kernel::{Ppoll, set_errno};
pub use leaving::*;
pub use saiga_channel::sys::{Errno, Fd, Sys};
pub use saiga_status::Reason;
pub use start::{Start, start};
