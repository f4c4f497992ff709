//! Configuration of a sampler: the sampled objects, the interval, and the output files.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::status::StatusSource;

/// Name of the phase that the summary covers.
pub const MEASURED: &str = "measured";

/// Directories that the kernel's files are read from. The default is `/proc` and `/sys`; tests use
/// their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    pub proc: PathBuf,
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

/// Processes that are accounted together with all their descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Prefix of the names of its metrics: `server`, `client`.
    pub name: String,
    /// The root processes. [`crate::Sampler::set_group`] can set them later.
    pub pids: Vec<u32>,
}

impl Group {
    /// A group without processes, for use with [`crate::Sampler::set_group`].
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pids: Vec::new(),
        }
    }
}

/// A device, in the notation of BenchmarkSQL's property `osCollectorDevices`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// `blk_sda`, with a name of `/proc/diskstats`.
    Disk(String),
    /// `net_eth0`, with a name of `/proc/net/dev`.
    Network(String),
}

/// A word in `osCollectorDevices` that begins with neither `blk_` nor `net_`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a device; write blk_NAME for a disk or net_NAME for a network interface")]
pub struct UnknownDevice {
    pub word: String,
}

impl Device {
    /// Parses the value of `osCollectorDevices`: words separated by spaces. Fails with the first
    /// word that is not a device.
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

/// Inverse of [`Device::list`] for one device: `blk_sda`, `net_eth0`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(name) => write!(f, "blk_{name}"),
            Self::Network(name) => write!(f, "net_{name}"),
        }
    }
}

/// The objects to sample.
pub struct Config {
    /// Time between two rows. The default is one second, the minimum one millisecond.
    pub interval: Duration,
    pub roots: Roots,
    pub groups: Vec<Group>,
    /// Devices in addition to the physical disks and interfaces, which are always sampled.
    pub devices: Vec<Device>,
    /// Directories whose file system usage is recorded before and after the run.
    pub directories: Vec<PathBuf>,
    /// Database status; each source is read by its own thread.
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

/// The output files of a sampler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sink {
    /// The series file, usually `host.csv`. It must not exist yet.
    pub series: Option<PathBuf>,
    pub benchmarksql: Option<BenchmarkSqlSink>,
}

/// Directory and run number of the files `sys_info.csv`, `blk_X.csv` and `net_X.csv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchmarkSqlSink {
    /// An existing directory, usually `RESULT/data`. The files must not exist yet.
    pub directory: PathBuf,
    /// The first column of every file.
    pub run: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_notation_of_benchmarksql() {
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
