//! Settings of the library and the CLI, each value with its origin.
//!
//! The layers, each of which overrides those before: defaults, `/etc/saiga/saiga.toml`, the
//! user's file (or the file that `SAIGA_CONFIG` names), `SAIGA_*` variables. The CLI adds its
//! flags. A bad layer gives an error value: the library then stays on kernel TCP, and its status
//! page shows the error.
//!
//! This crate runs inside the library's constructor. It starts no threads, has no globals, reads
//! no clock, and reads the environment only through the caller's closure.

mod error;
mod layer;
mod settings;
mod value;
mod watch;

pub use error::SettingsError;
pub use layer::{VARIABLES, unknown_variables};
pub use settings::{Origin, Row, Setting, Settings};
pub use value::{Profile, RingBytes, Spin};
pub use watch::{SYSTEM_FILE, Sources, Watch};
