//! Real programs under `libsaiga.so`: the harness of the integration tests.
//!
//! Input: a C or Python program from `programs/`; result: its output, its ending, and whether the
//! kernel counted its bytes. [`parity`] compares a run on the kernel with a run under the library;
//! [`bounded`] runs any command under a time limit; [`census`] counts descriptors, mappings and
//! memory of a process; [`reaper`] makes sure that nothing outlives the test process.
//!
//! Deliberately absent: any knowledge of the library's internals. An upgrade is proved by the
//! kernel's own byte count of the TCP connection, which stops growing.

pub mod bounded;
pub mod census;
pub mod certificate;
pub mod compile;
pub mod library;
pub mod log;
pub mod mariadb;
pub mod moves;
pub mod parity;
pub mod peer;
pub mod port;
pub mod postgres;
pub mod program;
pub mod reaper;
pub mod redis;
pub mod redis_topology;
pub mod scale;
pub mod snapshot;
pub mod sys;
pub mod victim;
pub mod witness;

pub use sys::Signal;
