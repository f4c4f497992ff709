//! AF_XDP: an interface stays with the kernel, and the flows of served endpoints go to this
//! process.
//!
//! Source: Documentation/networking/af_xdp.rst, Documentation/bpf/redirect.rst. An [`Interface`]
//! holds the XDP program and says which frames are redirected; a [`Queue`] is the [`Device`] of one
//! queue. Read `program.rs`, then `ring.rs` and `queue.rs`.
//!
//! Deliberately absent: packets in several frames (jumbo frames), offloads of sent frames, and a
//! way to give a frame to the kernel. All frames that the kernel must get do not come here.
//!
//! [`Device`]: crate::Device

mod error;
mod interface;
mod nic;
mod options;
mod partial;
mod program;
mod queue;
mod ring;
mod socket;
mod steering;
mod umem;

pub use error::{OpenError, SteerError};
pub use interface::Interface;
pub use nic::merges;
pub use options::{BusyPoll, Copies, FrameSize, Options, XdpMode};
pub use queue::Queue;
pub use steering::{Flows, MAX_ENDPOINTS, MAX_HOSTS};
