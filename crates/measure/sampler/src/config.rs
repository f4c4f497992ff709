//! What is sampled, how often, and where the rows go.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::status::StatusSource;

/// The phase whose rows make the summary.
pub const MEASURED: &str = "measured";

/// Where `/proc` and `/sys` are; tests have their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// Usually `/proc`.
    pub proc: PathBuf,
    /// Usually `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
        }
    }
}

/// Processes that are accounted together, with all their descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Begins the names of its metrics: `server`, `client`.
    pub name: String,
    /// The roots; may be empty now and come with [`crate::Sampler::set_group`].
    pub pids: Vec<u32>,
}

impl Group {
    /// A group whose processes are not known yet.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pids: Vec::new(),
        }
    }
}

/// A device as `osCollectorDevices` of BenchmarkSQL names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// `blk_sda`: a name in `/proc/diskstats`.
    Disk(String),
    /// `net_eth0`: a name in `/proc/net/dev`.
    Network(String),
}

/// A word in `osCollectorDevices` that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a device; write blk_NAME for a disk or net_NAME for a network interface")]
pub struct UnknownDevice {
    /// The word.
    pub word: String,
}

impl Device {
    /// Reads the value of `osCollectorDevices`: words separated by blanks.
    ///
    /// # Errors
    /// The first word that begins with neither `blk_` nor `net_`.
    pub fn list(text: &str) -> Result<Vec<Self>, UnknownDevice> {
        text.split_whitespace().map(Self::parse).collect()
    }

    fn parse(word: &str) -> Result<Self, UnknownDevice> {
        let named = |prefix: &str| word.strip_prefix(prefix).filter(|name| !name.is_empty());
        match (named("blk_"), named("net_")) {
            (Some(disk), _) => Ok(Self::Disk(disk.to_owned())),
            (None, Some(interface)) => Ok(Self::Network(interface.to_owned())),
            (None, None) => Err(UnknownDevice {
                word: word.to_owned(),
            }),
        }
    }
}

/// `blk_sda`, `net_eth0`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(name) => write!(f, "blk_{name}"),
            Self::Network(name) => write!(f, "net_{name}"),
        }
    }
}

/// What is sampled.
pub struct Config {
    /// Time between two rows; one second unless a test says otherwise, a millisecond at least.
    pub interval: Duration,
    /// Where the kernel's files are.
    pub roots: Roots,
    /// Groups of processes.
    pub groups: Vec<Group>,
    /// Devices besides the real disks and interfaces, which are always sampled.
    pub devices: Vec<Device>,
    /// Directories whose file systems are looked at before and after.
    pub directories: Vec<PathBuf>,
    /// Status of databases; each is read by a thread of its own.
    pub sources: Vec<Box<dyn StatusSource>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            roots: Roots::default(),
            groups: Vec::new(),
            devices: Vec::new(),
            directories: Vec::new(),
            sources: Vec::new(),
        }
    }
}

/// Where rows go besides memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sink {
    /// The series file, usually `host.csv`; it must not exist yet.
    pub series: Option<PathBuf>,
    /// BenchmarkSQL's own files.
    pub benchmarksql: Option<BenchmarkSqlSink>,
}

/// Where `sys_info.csv`, `blk_X.csv` and `net_X.csv` go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchmarkSqlSink {
    /// An existing directory, usually `RESULT/data`, without these files.
    pub directory: PathBuf,
    /// The number of the run, the first column of every file.
    pub run: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_benchmarksql_writes_them() {
        assert_eq!(
            Device::list(" net_eth0  blk_nvme0n1 ").unwrap(),
            [
                Device::Network("eth0".into()),
                Device::Disk("nvme0n1".into())
            ]
        );
        assert_eq!(Device::list("").unwrap(), []);
        for word in ["sda", "blk_", "net_", "disk_sda"] {
            let refused = Device::list(word).unwrap_err();
            assert_eq!(refused.word, word);
        }
        assert_eq!(Device::Disk("sda".into()).to_string(), "blk_sda");
    }
}
