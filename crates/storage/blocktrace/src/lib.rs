//! Block writes of this machine as they are submitted: device, address, length, lifetime hint.
//!
//! [`Tap`] tells each write and discard once, by a BPF program on the tracepoint `block_bio_queue`, or where BPF is
//! refused, by a tracefs instance of its own. [`HintMeter`] only adds bytes up, in the kernel, by device and hint.
//!
//! Deliberately absent: which file a write belongs to (`saiga-record`), reads, flushes, latencies.

mod bpf;
mod device;
mod event;
mod meter;
mod sys;
mod tap;
mod tracefs;

pub use bpf::BpfError;
pub use device::{Device, UnknownDevice};
pub use event::{Event, Operation};
pub use meter::{Counted, HintMeter, MeterError};
pub use tap::{Options, Tap, TapError, Via};
pub use tracefs::TracefsError;
