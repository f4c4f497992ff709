//! Systemd services and PostgreSQL clusters that start with `libsaiga.so` preloaded.
//!
//! [`Service`] decides whether a service can be enabled, and writes or removes what enables it: a
//! drop-in, or for a PostgreSQL cluster a line in its file `environment`. [`OwnUnit`] installs and
//! removes whole units of Saiga's. All files are below a [`Root`], which need not be the system
//! that runs, so images and chroots work, too. [`Manager`] is the systemd that runs.
//!
//! Deliberately absent: output, edits of units, restarts of services (ADR 9).

mod account;
mod apparmor;
mod check;
mod cluster;
mod drop_in;
mod exec_start;
mod glob;
mod isolation;
mod library;
mod manager;
mod name;
mod obstacle;
mod own_unit;
mod plan;
mod replace;
mod root;
mod running;
mod sandbox;
mod selinux;
mod service;
mod specifier;
mod unit;
mod word;

pub use account::AccountError;
pub use apparmor::Confinement;
pub use check::confinement;
pub use cluster::{Cluster, ClusterError};
pub use library::Library;
pub use manager::{Manager, ManagerError};
pub use name::{NameError, UnitName};
pub use obstacle::Obstacle;
pub use own_unit::{OwnUnit, OwnUnitError};
pub use plan::Change;
pub use replace::FileError;
pub use root::{Root, RootError};
pub use running::{Unloaded, is_loaded, why_unloaded};
pub use service::{Disabled, Enabled, Enabling, Permissions, Service, ServiceError, enabled};
pub use unit::UnitError;
pub use word::{WordError, absolute, command_word, word};
