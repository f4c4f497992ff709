//! The gateway serves remote clients of unmodified servers through Saiga's own TCP/IP stack.
//!
//! [`settings`] reads `gateway.toml` (`docs/gateway.md` explains each key). [`lstack`] translates
//! the `lstack.conf` of Gazelle into the same settings. Both read one file and do no other I/O:
//! what only the machine can tell is a list of [`settings::Need`]s.
//!
//! Deliberately absent so far: devices, workers and anchors.

pub mod file;
pub mod lstack;
pub mod settings;
