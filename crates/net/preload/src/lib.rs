//! `libsaiga.so`: C signatures in, socket calls out.
//!
//! `symbols` is the one table of what is interposed and why; `hooks` has one
//! function per row, grouped as the manual pages are. A hook looks the descriptor
//! up and, if it is none of ours, goes to libc with one load and one branch.
//!
//! Deliberately absent: threads, timers, signal handlers, standard I/O.

mod hooks;
mod init;
mod symbols;
