//! `libsaiga.so`: translates calls of C functions into calls of the socket layer.
//!
//! `symbols` is the table of the interposed functions and the reasons for each; `hooks` has one
//! function per row, grouped like the manual pages. A hook looks the descriptor up and, if it is
//! not tracked, calls libc after one load and one branch.
//!
//! Deliberately absent: threads, timers, signal handlers, standard I/O.

mod hooks;
mod init;
mod symbols;
