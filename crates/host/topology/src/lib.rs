//! CPUs, caches, NUMA nodes, network devices, interrupts and disks of a machine.
//!
//! [`read`](read::read) reads a machine below a [`Root`](saiga_process::root::Root) into a
//! [`Machine`](machine::Machine), which is plain data: tests and bug reports use recorded trees.
//! [`process`] tells where a process runs and where its memory is, [`collect`] records a machine
//! in an archive, [`latency`] measures memory, and [`draw`] and [`page`] show all of it.

pub mod collect;
pub mod draw;
pub mod latency;
pub mod machine;
mod overview;
pub mod page;
pub mod process;
pub mod read;
mod roles;
mod scrub;
mod source;
mod summary;
pub mod unpack;
