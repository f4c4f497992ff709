//! Readers of the kernel's files.
//!
//! Each reader adds its columns to the table once and fills them in every row; missing values stay
//! empty. The crate `procfs` parses most files. It numbers cores by their order, which is wrong if
//! a core is offline, and does not parse interrupts, so Saiga has its own parsers for these files.

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod filesystem;
mod group;
pub(crate) mod interrupts;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod numa;
pub(crate) mod processes;
pub(crate) mod tcp;
pub(crate) mod text;
mod threads;

#[cfg(test)]
pub(crate) mod testing;
