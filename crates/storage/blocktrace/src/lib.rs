//! Block writes of this host at their submission: device, address, length, lifetime hint.
//!
//! [`Tap`] returns each write and discard once. It uses a BPF program on the tracepoint
//! `block_bio_queue` or, if the kernel refuses BPF, a tracefs instance of its own. [`HintMeter`]
//! sums the written bytes in the kernel, by device and hint.
//!
//! This crate does not find the file of a write (`saiga-record` does), and does not follow reads,
//! flushes or latencies.

mod bpf;
mod device;
mod event;
mod meter;
mod tap;
mod tracefs;

pub use bpf::BpfError;
pub use device::{Device, UnknownDevice};
pub use event::{Event, Operation};
pub use meter::{HintBytes, HintMeter, MeterError};
pub use tap::{Options, Tap, TapError, Via};
pub use tracefs::TracefsError;
