//! The words that describe a knob: its risk, where it holds, and when it is applied.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a change may cost beside its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Takes effect at once and is undone at once.
    Safe,
    /// A network link may be down for seconds.
    Flap,
    /// A service or the database has to be restarted.
    Restart,
    /// The machine has to be restarted.
    Reboot,
    /// Durability, isolation or diagnosis is reduced. Only if the user names the knob.
    TradesSafety,
    /// Data is lost. Only if the user names the knob.
    DestroysData,
}

impl Risk {
    /// Whether a plan may contain such a change without the user naming it.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        self < Self::TradesSafety
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safe => "safe",
            Self::Flap => "flap",
            Self::Restart => "restart",
            Self::Reboot => "reboot",
            Self::TradesSafety => "trades safety",
            Self::DestroysData => "destroys data",
        })
    }
}

/// What a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole machine: a container cannot or must not change it.
    Host,
    /// One network namespace, such as that of a container.
    NetworkNamespace,
}

/// The order of changes in a plan; undo goes backwards.
///
/// A daemon that moves interrupts is stopped first. A new queue count resets interrupt affinity,
/// XPS and RPS, so it comes before them. Own files describe what the other steps set, so they come
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Services,
    Queues,
    Nic,
    Affinity,
    Steering,
    Kernel,
    Memory,
    Network,
    Disk,
    Persist,
}

impl Stage {
    /// Whether a change may cut the connection over which the user works.
    #[must_use]
    pub fn needs_confirmation(self) -> bool {
        matches!(
            self,
            Self::Queues | Self::Nic | Self::Affinity | Self::Steering
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Services => "services",
            Self::Queues => "network queues",
            Self::Nic => "network devices",
            Self::Affinity => "interrupts",
            Self::Steering => "packet steering",
            Self::Kernel => "kernel",
            Self::Memory => "memory",
            Self::Network => "network",
            Self::Disk => "disks",
            Self::Persist => "files for the next boot",
        })
    }
}
