//! What `prepare` changes, and that `undo` gives everything back, byte for byte.
//!
//! The machine is a directory with the files that count here; [`fake`] does what the kernel does
//! when a file is written. Tests run as root, to whom the record must belong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;
mod kills;
mod obstacles;
mod record;
mod values;
