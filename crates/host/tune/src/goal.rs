//! What a plan is for: the engine, the role of the host, and values that the user names.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::persist::binding::Bindings;

/// The database for which the host is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    Mysql,
    Postgres,
    OpenGauss,
    Redis,
    /// No rule proposes a value; only named values and the placement count.
    #[default]
    None,
}

/// What runs on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    #[default]
    Server,
    /// The load generator or the application.
    Client,
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Goal {
    pub engine: Engine,
    pub role: Role,
    pub named: Vec<Named>,
    /// Knobs for which no value is proposed.
    pub without: Vec<String>,
    pub placement: Placement,
    /// Whether files make the values hold after the next boot.
    pub is_persistent: bool,
    /// Services that are started on their CPUs and nodes.
    pub bindings: Bindings,
}

/// Where interrupts go, as the planner of cores decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// Queue pairs by network device.
    pub queues: BTreeMap<String, u32>,
    /// CPUs by interrupt.
    pub irqs: BTreeMap<u32, Vec<u32>>,
    /// CPUs that send on a transmit queue, by device and queue (XPS).
    pub transmit: BTreeMap<(String, u32), Vec<u32>>,
    /// CPUs that process packets of a receive queue, by device and queue (RPS).
    pub receive: BTreeMap<(String, u32), Vec<u32>>,
}

/// A value for a knob: `vm.swappiness=1`, or for one device `disk.scheduler@nvme0n1=none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub knob: String,
    pub instance: Option<String>,
    pub value: String,
}

/// A text that is not `KNOB=VALUE` or `KNOB@DEVICE=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a setting: write KNOB=VALUE or KNOB@DEVICE=VALUE")]
pub struct NamedError(String);

impl FromStr for Named {
    type Err = NamedError;

    fn from_str(text: &str) -> Result<Self, NamedError> {
        let error = || NamedError(text.to_owned());
        // What is refused needs no value.
        let bare = || crate::refused::find(text).map(|_| (text, ""));
        let (name, value) = text.split_once('=').or_else(bare).ok_or_else(error)?;
        if crate::refused::find(name.trim()).is_some() {
            return Ok(Self {
                knob: name.trim().to_owned(),
                instance: None,
                value: value.trim().to_owned(),
            });
        }
        let (knob, instance) = match name.split_once('@') {
            Some((knob, instance)) => (knob, Some(instance.trim().to_owned())),
            None => (name, None),
        };
        let (knob, value) = (knob.trim().to_owned(), value.trim().to_owned());
        if knob.is_empty() || instance.as_deref() == Some("") {
            return Err(error());
        }
        Ok(Self {
            knob,
            instance,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_value_may_be_for_one_device() {
        let named: Named = "disk.scheduler@nvme0n1 = none".parse().unwrap();
        assert_eq!(named.knob, "disk.scheduler");
        assert_eq!(named.instance.as_deref(), Some("nvme0n1"));
        assert_eq!(named.value, "none");
        for bad in ["vm.swappiness", "=1", "a@=1"] {
            let error = bad.parse::<Named>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` is not")), "{error}");
        }
    }
}
