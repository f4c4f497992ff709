//! Real programs under `libsaiga.so`: the harness of the integration tests.
//!
//! In goes a C or Python program from `programs/`; out comes what it printed,
//! how it ended and whether the kernel saw its bytes. [`parity`] compares a run
//! on the kernel with a run under the library; [`bounded`] runs anything under
//! a time limit; [`census`] counts descriptors, mappings and memory of a
//! process; [`leash`] lets nothing outlive the test process.
//!
//! Deliberately absent: any knowledge of the library's insides. Proof of an
//! upgrade is the kernel's own byte count of the TCP connection standing still.

pub mod bounded;
pub mod census;
pub mod certificate;
pub mod compile;
pub mod leash;
pub mod library;
pub mod log;
pub mod mariadb;
pub mod parity;
pub mod peer;
pub mod port;
pub mod postgres;
pub mod program;
pub mod redis;
pub mod redis_topology;
pub mod scale;
pub mod sys;
pub mod tally;
pub mod victim;
pub mod witness;

pub use sys::Signal;
