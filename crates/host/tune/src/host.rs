//! The host as tuning sees it: values that are read and written, and facts that are only read.

mod ethtool;
mod live;
mod own_file;
mod services;

use std::io;
use std::time::Duration;

pub use ethtool::{Ethtool, Ioctl};
pub use live::LiveHost;
pub use services::{Services, Systemctl};

use crate::target::Target;

/// Reads and writes one host. Each call is one operation that may fail.
pub trait Host {
    /// The raw text of a value; `None` if the host does not have it.
    ///
    /// # Errors
    /// The value exists and cannot be read.
    fn read(&self, target: &Target) -> io::Result<Option<String>>;

    /// Writes a value in one call. `None` removes a file of Saiga's.
    ///
    /// # Errors
    /// The kernel or the service manager refused; the value may have changed all the same.
    fn write(&mut self, target: &Target, text: Option<&str>) -> io::Result<()>;

    /// The text of a file that is not a target, such as `/proc/net/tcp`; `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    fn fact(&self, path: &str) -> io::Result<Option<String>>;

    /// The names in a directory, sorted; none if it does not exist.
    ///
    /// # Errors
    /// The directory exists and cannot be read.
    fn names(&self, dir: &str) -> io::Result<Vec<String>>;

    /// The kernel's ID of this boot.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    fn boot_id(&self) -> io::Result<String>;

    /// Time since this boot, with the time for which the host was suspended. Setting the clock does
    /// not change it.
    fn uptime(&self) -> Duration;
}
