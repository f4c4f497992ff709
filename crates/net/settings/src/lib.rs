//! Settings of the library and the CLI, each value with its origin.
//!
//! Layers, later ones win: defaults, `/etc/saiga/saiga.toml`, the user's file (or
//! the one that `SAIGA_CONFIG` names), `SAIGA_*` variables; the CLI adds its flags.
//! A bad layer is an error value: the library then stays on kernel TCP and says so.
//!
//! Runs inside the library's constructor: deliberately absent are threads, globals,
//! clocks and any read of the environment except through the caller's closure.

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
