//! The kernel's files, one reader per idea.
//!
//! Each reader adds its columns to the table once and fills them at every row. What a file
//! does not say stays empty. `procfs` parses where its records fit; it numbers cores by their
//! order, which is wrong beside an offline core, and knows no interrupts, so those are ours.

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
