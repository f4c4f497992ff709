//! Why DPDK cannot be used.

use std::io;
use std::path::PathBuf;

/// Why DPDK does not begin, or a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DpdkError {
    /// The plug-in is not installed.
    #[error(
        "Saiga's plug-in for DPDK is neither at {} nor at {}: install DPDK 22.11 (on Debian: \
         apt-get install libdpdk-dev), then run `make install` again",
        beside.display(), installed.display()
    )]
    NoPlugin {
        /// Where a build has it.
        beside: PathBuf,
        /// Where an installation has it.
        installed: PathBuf,
    },
    /// The plug-in cannot be loaded, most often because DPDK is missing or has another version.
    #[error(
        "{} cannot be loaded: {reason}: install DPDK 22.11 (on Debian: apt-get install \
         libdpdk-dev)",
        path.display()
    )]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        reason: String,
    },
    /// The plug-in belongs to another version of Saiga.
    #[error("{} belongs to another version of Saiga: run `make install` again", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
    },
    /// DPDK was begun before, and can be only once.
    #[error("DPDK was begun before in this process, which is possible only once")]
    Begun,
    /// DPDK does not begin.
    #[error(
        "DPDK does not begin: {source}; its messages are above. It needs free huge pages (`up \
         --prepare` reserves them), or `memory = \"ordinary\"`, and accepts only arguments in `eal` \
         that it knows"
    )]
    Begin {
        /// The error of `rte_eal_init`.
        source: io::Error,
    },
    /// DPDK has no such port.
    #[error(
        "DPDK has no port {port}: {source}. A card must be bound to vfio-pci (`up --prepare`), a \
         virtual device needs its driver and right arguments; messages of DPDK are above"
    )]
    NoPort {
        /// The port, as it was asked for.
        port: String,
        /// The error of DPDK.
        source: io::Error,
    },
    /// The port has fewer queues.
    #[error("port {port} of DPDK has fewer than {queues} queues: use fewer workers for it")]
    Queues {
        /// The port, as it was asked for.
        port: String,
        /// The number that was asked for.
        queues: u16,
    },
    /// The port does not keep a connection on its queue.
    #[error(
        "the driver of port {port} of DPDK does not keep the frames of a connection on one queue \
         (RSS): serve it with one worker"
    )]
    Spreads {
        /// The port, as it was asked for.
        port: String,
    },
    /// There is not enough memory for frames.
    #[error(
        "DPDK has no memory for the frames of port {port}: free more huge pages on its node, raise \
         `dpdk.memory`, or lower `ring`"
    )]
    Memory {
        /// The port, as it was asked for.
        port: String,
    },
    /// The port cannot be configured.
    #[error("port {port} of DPDK cannot be used: {call}: {source}")]
    Port {
        /// The port, as it was asked for.
        port: String,
        /// The function that failed.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// Its error.
        source: io::Error,
    },
}
