//! Processes and files of this host: start, wait, stop and account processes, and read `/proc`.
//!
//! [`child`] starts a program with CPUs, memory policy and user, and ends it with its group;
//! [`network`] creates network namespaces; [`cpu`] measures CPU time; [`proc`], [`pidfd`] and
//! [`sockets`] look at processes of others; [`replace`] and [`lock`] are for files that other
//! processes use at the same time. This crate knows no experiment and no database.

pub mod account;
pub mod available_memory;
pub mod child;
pub mod cores;
pub mod cpu;
mod group;
pub mod hardware;
pub mod interrupt;
pub mod lock;
pub mod log;
pub mod memory;
pub mod network;
pub mod numbers;
pub mod pidfd;
pub mod port;
pub mod proc;
pub mod replace;
pub mod root;
pub mod secret;
pub mod sockets;
mod tree;
pub mod version;
