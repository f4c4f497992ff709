//! A knob: values of the host that are changed for one purpose, and the rule that proposes them.

use saiga_topology::machine::Machine;

use crate::about::{Risk, Scope, Stage};
use crate::form::{Form, cpus};
use crate::goal::{Engine, Goal, Role};
use crate::readings::Readings;
use crate::target::Target;

/// A knob. Its texts are for people; `docs/tune.md` has a table of them.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    pub id: &'static str,
    /// What it decides.
    pub purpose: &'static str,
    /// Why a database host may want another value.
    pub reason: &'static str,
    pub source: &'static str,
    /// With sign and size, where they are published.
    pub effect: &'static str,
    /// The value that a rule proposes and when, in words.
    pub default: &'static str,
    pub risk: Risk,
    pub scope: Scope,
    pub stage: Stage,
    pub(crate) domain: Domain,
    pub(crate) at: Places,
    /// The value for a place, if the goal asks for one.
    pub(crate) propose: fn(&Context, &Place) -> Option<String>,
    /// The reason why a value cannot be set at a place.
    pub(crate) check: fn(&Context, &Place, &str) -> Result<(), String>,
}

/// Where the values of a knob are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Places {
    /// One file of words.
    File(&'static str),
    /// Two files of which the kernel sets one to 0 when the other is written.
    Coupled(&'static str, &'static str),
    /// Depends on the machine.
    By(fn(&Machine) -> Vec<Place>),
}

/// One value of a knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub instance: Option<String>,
    pub target: Target,
    pub coupled: Vec<Target>,
}

impl Place {
    pub(crate) fn new(instance: impl ToString, target: Target) -> Self {
        Self {
            instance: Some(instance.to_string()),
            target,
            coupled: Vec::new(),
        }
    }

    pub(crate) fn instance(&self) -> &str {
        self.instance.as_deref().unwrap_or_default()
    }
}

/// The values that a user may name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Domain {
    Number(u64, u64),
    /// This many numbers.
    Numbers(usize),
    Words(&'static [&'static str]),
    /// A word that the value in the file lists.
    Listed,
    CpuList,
    Mask,
    /// The first and the last port.
    Ports,
    /// Port numbers and ranges with commas, or nothing.
    PortList,
}

impl Domain {
    /// # Errors
    /// What the value should be.
    pub(crate) fn check(self, value: &str) -> Result<(), String> {
        let numbers: Option<Vec<u64>> = value
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let numbers = numbers.unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
        let (is_valid, wanted) = match self {
            Self::Number(min, max) => (
                matches!(numbers[..], [number] if (min..=max).contains(&number)),
                format!("a number from {min} to {max}"),
            ),
            Self::Numbers(count) => (numbers.len() == count, format!("{count} numbers")),
            Self::Words(words) => (words.contains(&value), words.join(" or ")),
            Self::Listed => (
                !value.is_empty() && value.chars().all(is_word),
                "a word".to_owned(),
            ),
            Self::CpuList => (
                cpus(value).is_some_and(|cpus| !cpus.is_empty()),
                "a list of CPUs such as 0-3,8".to_owned(),
            ),
            Self::Mask => (
                !value.is_empty() && value.chars().all(|c| c.is_ascii_hexdigit() || c == ','),
                "a hexadecimal mask".to_owned(),
            ),
            Self::Ports => (
                matches!(numbers[..], [first, last] if 0 < first && first < last && last < 1 << 16),
                "the first and the last port".to_owned(),
            ),
            Self::PortList => (
                value
                    .chars()
                    .all(|c| c.is_ascii_digit() || ",-".contains(c)),
                "ports and ranges with commas".to_owned(),
            ),
        };
        if is_valid { Ok(()) } else { Err(wanted) }
    }
}

/// What a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub machine: &'a Machine,
    pub readings: &'a Readings,
    pub goal: &'a Goal,
}

impl Context<'_> {
    /// Whether a database runs on this host.
    pub(crate) fn serves(&self) -> bool {
        self.goal.engine != Engine::None && self.goal.role != Role::Client
    }

    /// Whether connections to a database are made on this host.
    pub(crate) fn drives(&self) -> bool {
        self.goal.engine != Engine::None && self.goal.role != Role::Server
    }

    pub(crate) fn serves_any(&self, engines: &[Engine]) -> bool {
        self.serves() && engines.contains(&self.goal.engine)
    }

    pub(crate) fn number(&self, place: &Place) -> Option<u64> {
        let raw = self.readings.raw(&place.target)?;
        place.target.form().value(raw).parse().ok()
    }

    /// `value`, if the current number is less.
    pub(crate) fn at_least(&self, place: &Place, value: u64) -> Option<String> {
        (self.number(place)? < value).then(|| value.to_string())
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.machine
            .nodes
            .iter()
            .map(|node| node.memory_bytes)
            .sum()
    }

    /// Whether this process is in a container, where values of the host are not to be changed. A
    /// container in a virtual machine has both names.
    pub(crate) fn is_container(&self) -> bool {
        const CONTAINERS: [&str; 10] = [
            "container",
            "cri-o",
            "docker",
            "kubernetes",
            "lxc",
            "nspawn",
            "openvz",
            "podman",
            "rkt",
            "incus",
        ];
        let kinds = self.machine.system.virtualisation.as_deref();
        let kinds = kinds.unwrap_or_default().to_lowercase();
        CONTAINERS.iter().any(|name| kinds.contains(name))
    }
}

impl Knob {
    /// The values of this knob on a machine. A file of the kernel may not exist there.
    #[must_use]
    pub fn places(&self, machine: &Machine) -> Vec<Place> {
        let one = |target, coupled| {
            let place = Place {
                instance: None,
                target,
                coupled,
            };
            vec![place]
        };
        match self.at {
            Places::File(path) => one(Target::file(path, Form::Words), Vec::new()),
            Places::Coupled(path, other) => one(
                Target::file(path, Form::NonZero),
                vec![Target::file(other, Form::NonZero)],
            ),
            Places::By(places) => places(machine),
        }
    }

    /// A safe knob of one file, for which no rule proposes a value.
    const fn file(path: &'static str, stage: Stage) -> Self {
        Self {
            id: "",
            purpose: "",
            reason: "",
            source: "",
            effect: "",
            default: "only by name",
            risk: Risk::Safe,
            scope: Scope::Host,
            stage,
            domain: Domain::Number(0, i32::MAX.unsigned_abs() as u64),
            at: Places::File(path),
            propose: |_, _| None,
            check: |_, _, _| Ok(()),
        }
    }

    pub(crate) const fn kernel(path: &'static str) -> Self {
        Self::file(path, Stage::Kernel)
    }

    pub(crate) const fn memory(path: &'static str) -> Self {
        Self::file(path, Stage::Memory)
    }

    pub(crate) const fn network(path: &'static str) -> Self {
        Self {
            scope: Scope::NetworkNamespace,
            ..Self::file(path, Stage::Network)
        }
    }

    pub(crate) const fn by(places: fn(&Machine) -> Vec<Place>, stage: Stage) -> Self {
        Self {
            at: Places::By(places),
            ..Self::file("", stage)
        }
    }
}
