//! `saiga` on a real kernel and an NVMe drive with data placement, both of QEMU.
//!
//! `tools/qemu target/qemu` fetches QEMU, kernel and programs; `make soak` calls it. A machine has no
//! network, has the disks of its test only, and ends by itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counters;
mod machine;
mod plan;
