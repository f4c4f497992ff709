//! The settings in force: the merged layers, each value with its origin.

use std::fmt;
use std::path::PathBuf;

use crate::layer::Layer;
use crate::value::{Profile, RingBytes, Spin};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    /// The name of an environment variable.
    Variable(&'static str),
    /// The key of another setting that determines this value.
    Follows(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Follows(key) => write!(f, "follows from {key}"),
        }
    }
}

/// A value in force, and the last layer that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    const fn new(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }

    fn set(&mut self, value: Option<T>, origin: Origin) {
        if let Some(value) = value {
            *self = Self { value, origin };
        }
    }
}

/// The settings in force; `examples/saiga.toml` explains each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kill switch: if false, no connection is upgraded.
    pub enabled: Setting<bool>,
    /// Messages that a connection carries by TCP before an upgrade; 0 upgrades at once.
    pub evidence_messages: Setting<u32>,
    pub profile: Setting<Profile>,
    pub spin: Setting<Spin>,
    pub ring: Setting<RingBytes>,
    /// Connections from or to these ports stay on TCP.
    pub ports_off: Setting<Vec<u16>>,
    /// Names of executable files; processes that run these files stay on TCP.
    pub programs_off: Setting<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: Setting::new(true),
            evidence_messages: Setting::new(64),
            profile: Setting::new(Profile::Default),
            spin: Setting {
                value: Profile::Default.spin(),
                origin: Origin::Follows("profile"),
            },
            ring: Setting::new(RingBytes::default()),
            ports_off: Setting::new(Vec::new()),
            programs_off: Setting::new(Vec::new()),
        }
    }
}

/// One line of `saiga config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key in `saiga.toml`.
    pub key: &'static str,
    /// The value in the syntax of `saiga.toml`.
    pub value: String,
    pub origin: Origin,
}

impl Settings {
    /// Overrides the values in force by those of `layer`. `origin` maps the name of a setting's
    /// environment variable to the origin of its value.
    pub(crate) fn apply(&mut self, layer: Layer, origin: impl Fn(&'static str) -> Origin) {
        let Layer {
            enabled,
            evidence_messages,
            profile,
            spin,
            ring,
            ports_off,
            programs_off,
        } = layer;
        self.enabled.set(enabled, origin("SAIGA_ENABLED"));
        self.evidence_messages
            .set(evidence_messages, origin("SAIGA_EVIDENCE_MESSAGES"));
        self.profile.set(profile, origin("SAIGA_PROFILE"));
        self.spin.set(spin, origin("SAIGA_SPIN"));
        self.ring.set(ring, origin("SAIGA_RING"));
        self.ports_off.set(ports_off, origin("SAIGA_PORTS_OFF"));
        self.programs_off
            .set(programs_off, origin("SAIGA_PROGRAMS_OFF"));
        if matches!(self.spin.origin, Origin::Follows(_)) {
            self.spin.value = self.profile.value.spin();
        }
    }

    /// Returns true if connections from or to `port` must stay on TCP.
    #[must_use]
    pub fn is_port_off(&self, port: u16) -> bool {
        self.ports_off.value.contains(&port)
    }

    /// Returns true if processes that run an executable file called `name` must stay on TCP.
    #[must_use]
    pub fn is_program_off(&self, name: &[u8]) -> bool {
        self.programs_off
            .value
            .iter()
            .any(|off| off.as_bytes() == name)
    }

    /// Returns every setting, in the order of the documentation.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let Self {
            enabled,
            evidence_messages,
            profile,
            spin,
            ring,
            ports_off,
            programs_off,
        } = self;
        vec![
            row("enabled", enabled, enabled.value.to_string()),
            row(
                "evidence_messages",
                evidence_messages,
                evidence_messages.value.to_string(),
            ),
            row("profile", profile, profile.value.name().to_owned()),
            row("spin", spin, spin.value.to_string()),
            row("ring", ring, ring.value.to_string()),
            row("ports_off", ports_off, format!("{:?}", ports_off.value)),
            row(
                "programs_off",
                programs_off,
                format!("{:?}", programs_off.value),
            ),
        ]
    }
}

fn row<T>(key: &'static str, setting: &Setting<T>, value: String) -> Row {
    Row {
        key,
        value,
        origin: setting.origin.clone(),
    }
}
