//! `saiga` on a real kernel in QEMU: NVMe drives with data placement, a machine of four nodes,
//! VLANs, and a network card that goes to DPDK.
//!
//! `tools/qemu target/qemu` fetches QEMU, kernel and programs; `make soak` calls it. A machine has
//! no network and only the disks of its test, and switches itself off.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counters;
mod machine;
mod plan;
mod planted;
mod prepare;
mod slow_disk;
mod tune;
mod vlan;
