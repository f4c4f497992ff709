//! Packet devices: frames in and out, with their offload requests.
//!
//! A [`Device`] is one queue of a packet device, and one worker owns it.
//!
//! Deliberately absent: what a frame contains, and what is done with it. A frame that must reach
//! the kernel is sent on another device, which leads to the kernel.

mod device;
pub mod xdp;

pub use device::{
    Counters, Device, DeviceError, Drops, Frame, Info, Offload, Segmentation, Traffic,
};
