//! The configuration of a database server, as a difference to the values that it runs with.
//!
//! [`wanted`] derives values from the hardware that an instance has, or takes them from a
//! procedure; [`diff`](diff::diff) compares them with the running values, which the caller reads
//! over the server's protocol. The running server decides which settings exist: a setting that it
//! does not know is left out, or replaced by its new name.

pub mod diff;
pub mod file;
mod mysql;
pub mod mysql_variables;
mod opengauss;
mod postgres;
pub mod procedures;
mod redis;
mod redo_log;
pub mod refused;
pub mod resources;
pub mod value;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// MySQL and MariaDB.
    MySql,
    Postgres,
    OpenGauss,
    Redis,
}

/// The kind of disk under the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    Rotational,
    Ssd,
    Nvme,
}

/// What one instance has of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Memory of the host or container, divided by the number of instances.
    pub memory_bytes: u64,
    pub cores: usize,
    /// NUMA nodes of these cores.
    pub nodes: usize,
    pub disk: DiskKind,
    /// Expected number of connections.
    pub connections: u32,
    /// Whether the user gave this number. A number that was only assumed lowers no setting.
    pub are_connections_given: bool,
    /// Whether only the server runs on the host, so that it may use most of the memory.
    pub is_dedicated: bool,
}

/// A setting with the value that it should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub name: String,
    /// As it is written in the server's configuration file.
    pub value: String,
    pub why: String,
    /// The cost of a value that makes the server less safe or less observable. Such a value is
    /// only proposed by name.
    pub trades: Option<String>,
    /// Whether a higher running value is kept, as for capacities: an operator had a reason for it.
    pub is_minimum: bool,
}

impl Wanted {
    fn kept_if_higher(self, is_minimum: bool) -> Self {
        Self { is_minimum, ..self }
    }
}

/// The values that follow from the hardware. None of them makes a server less safe.
#[must_use]
pub fn wanted(engine: Engine, resources: &Resources) -> Vec<Wanted> {
    match engine {
        Engine::MySql => mysql::wanted(resources),
        Engine::Postgres => postgres::wanted(resources),
        Engine::OpenGauss => opengauss::wanted(resources),
        Engine::Redis => redis::wanted(resources),
    }
}

fn setting(name: &str, value: impl ToString, why: &str) -> Wanted {
    Wanted {
        name: name.to_owned(),
        value: value.to_string(),
        why: why.to_owned(),
        trades: None,
        is_minimum: false,
    }
}

/// A setting whose running value is kept if it is higher.
fn minimum(name: &str, value: impl ToString, why: &str) -> Wanted {
    setting(name, value, why).kept_if_higher(true)
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A size as servers write it: whole GiB or MiB with the suffixes of the engine.
fn size(bytes: u64, [mega, giga]: [&str; 2]) -> String {
    if bytes >= GIB && bytes.is_multiple_of(GIB) {
        format!("{}{giga}", bytes / GIB)
    } else {
        format!("{}{mega}", bytes / MIB)
    }
}
