//! Packet devices: frames in and out, with their offload requests.
//!
//! A [`Device`] is one queue of a packet device, and one worker owns it. [`tap`] has devices whose
//! other end is the kernel, [`xdp`] queues of a NIC that the kernel keeps, [`dpdk`] queues of a NIC
//! that the kernel does not have, [`memif`] memory that two processes share, [`memory`] pairs of
//! devices in one process. [`capture`] and [`fault`] wrap any device: they record its frames, or
//! lose, delay and corrupt them.
//!
//! Deliberately absent: what a frame contains, and what is done with it. A frame that must reach
//! the kernel is sent on another device, which leads to the kernel.

pub mod capture;
mod device;
pub mod dpdk;
pub mod fault;
pub mod filter;
mod mapping;
pub mod memif;
pub mod memory;
mod stored;
pub mod tap;
pub mod xdp;

pub use device::{
    Counters, Device, DeviceError, Drops, Frame, Info, LARGEST_FRAME_BYTES, Link, Offload,
    Segmentation, Traffic,
};
