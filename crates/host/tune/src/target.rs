//! What a step writes: a file of the kernel, a file of Saiga's, a service, a network device.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::form::Form;

/// One value of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Target {
    /// A file below `/proc` or `/sys`.
    File { path: String, form: Form },
    /// A whole file that Saiga creates and removes.
    OwnFile { path: String },
    /// A unit of systemd.
    Service { unit: String, aspect: Aspect },
    /// A setting that `ethtool` shows.
    Nic { nic: String, setting: NicSetting },
}

/// A unit that is stopped may still start at the next boot, and the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// `active` or `inactive`.
    Active,
    /// `enabled`, `disabled`, or another word of `systemctl is-enabled`.
    Enabled,
}

/// A setting of a network device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicSetting {
    /// Queue pairs (`ethtool -l`), as `16 max 64`.
    CombinedQueues,
    /// Queues of a device that does not pair them.
    RxQueues,
    TxQueues,
    /// An offload by its kernel name (`ethtool -k`), as `on` or `off [fixed]`.
    Feature(String),
    /// Time for which received packets wait for others (`ethtool -c`), in microseconds.
    RxMicroseconds,
    TxMicroseconds,
    /// Whether the device adapts the times itself: `on` or `off`.
    AdaptiveRx,
    AdaptiveTx,
    /// Descriptors (`ethtool -g`), as `256 max 4096`.
    RxRing,
    TxRing,
    /// The queue of each entry of the indirection table (`ethtool -x`).
    Rss,
}

impl Target {
    #[must_use]
    pub fn form(&self) -> Form {
        match self {
            Self::File { form, .. } => form.clone(),
            Self::OwnFile { .. } => Form::Exact,
            Self::Service { .. } => Form::Words,
            Self::Nic { setting, .. } => match setting {
                NicSetting::CombinedQueues
                | NicSetting::RxQueues
                | NicSetting::TxQueues
                | NicSetting::Feature(_)
                | NicSetting::AdaptiveRx
                | NicSetting::AdaptiveTx => Form::First,
                NicSetting::RxMicroseconds
                | NicSetting::TxMicroseconds
                | NicSetting::RxRing
                | NicSetting::TxRing => Form::Near,
                NicSetting::Rss => Form::Words,
            },
        }
    }

    pub(crate) fn file(path: impl Into<String>, form: Form) -> Self {
        let path = path.into();
        Self::File { path, form }
    }

    /// Whether the value is kept on a disk. Other values end with the boot.
    #[must_use]
    pub fn outlives_the_boot(&self) -> bool {
        match self {
            Self::OwnFile { .. } => true,
            Self::Service { aspect, .. } => *aspect == Aspect::Enabled,
            Self::File { .. } | Self::Nic { .. } => false,
        }
    }

    /// The interrupt whose affinity this is. Its number may belong to another device after a boot.
    #[must_use]
    pub fn irq(&self) -> Option<u32> {
        let Self::File { path, .. } = self else {
            return None;
        };
        let rest = path.strip_prefix("/proc/irq/")?;
        rest.split_once('/')?.0.parse().ok()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } | Self::OwnFile { path } => f.write_str(path),
            Self::Service { unit, aspect } => match aspect {
                Aspect::Active => write!(f, "state of {unit}"),
                Aspect::Enabled => write!(f, "start of {unit} at boot"),
            },
            Self::Nic { nic, setting } => write!(f, "{setting} of {nic}"),
        }
    }
}

impl fmt::Display for NicSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CombinedQueues => "combined queues",
            Self::RxQueues => "receive queues",
            Self::TxQueues => "transmit queues",
            Self::Feature(name) => name,
            Self::RxMicroseconds => "rx-usecs",
            Self::TxMicroseconds => "tx-usecs",
            Self::AdaptiveRx => "adaptive-rx",
            Self::AdaptiveTx => "adaptive-tx",
            Self::RxRing => "receive ring",
            Self::TxRing => "transmit ring",
            Self::Rss => "indirection table",
        })
    }
}
