//! What DPDK needs of a machine: free huge pages, and network cards without a driver of the kernel.
//!
//! [`prepare()`] takes both from the kernel, and [`undo()`] gives them back. Each change is written
//! to a [record](Hold) before it is made, so that `undo` restores every value after kill -9 as
//! well. [`pages`] and [`card`] look without changing anything. Sources: kernel
//! Documentation/admin-guide/mm/hugetlbpage.rst, ABI/testing/sysfs-bus-pci, driver-api/vfio.rst.
//!
//! Deliberately absent: mounts of hugetlbfs, which DPDK does not need for anonymous huge pages, and
//! changes that outlive a reboot. The kernel then has its own values again.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod card;
mod change;
mod machine;
mod module;
pub mod pages;
mod pci;
mod prepare;
mod record;
mod undo;

pub use machine::{Host, Machine};
pub use pci::{NotPciAddress, PciAddress};
pub use prepare::{PrepareError, Prepared, Reason, Wanted, prepare};
pub use record::{Hold, RECORD, RecordError, hold};
pub use undo::{UndoError, Undone, undo};
