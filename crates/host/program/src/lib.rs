//! Executables before they run: which file a command name stands for, and whether the dynamic
//! loader will load `libsaiga.so` into it.
//!
//! `saiga run` asks for the program that it is about to become, `saiga compare` for the library of
//! each arm, and `saiga-service` for a program that systemd will start as another user. Reads
//! files and their metadata; changes and starts nothing.
#![forbid(unsafe_code)]

mod command;
mod elf;
pub mod library;
mod obstacle;
mod preload;

pub use command::{Command, CommandError};
pub use obstacle::Obstacle;
pub use preload::{Credentials, check, check_for};
