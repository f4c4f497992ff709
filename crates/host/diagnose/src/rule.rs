//! A rule and its judgement.

use serde::{Serialize, Serializer};

use crate::observation::Observation;

/// One test for one kind of bottleneck.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Name in outputs: lower-case letters and hyphens.
    pub name: &'static str,
    /// The resource or property that the rule judges, as the subject of a sentence.
    pub subject: &'static str,
    pub judge: fn(&Observation) -> Judgement,
}

/// The answer of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    Found(Box<Finding>),
    /// Nothing was found; the sentence has the numbers that were looked at.
    Clear(String),
    /// The rule lacks a source.
    Unknown(Needs),
}

/// The source that a rule lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    Load,
    Windows,
    Steps,
    Hops,
    Requests,
    Host,
    Server,
    Status,
    Replica,
    Clock,
    Change,
    Latency,
    Counters,
}

impl Needs {
    /// The source, and how to give it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Load => "the load as N, X and R over time (FILE)",
            Self::Windows => "the load in more windows of time",
            Self::Steps => "the load with at least two numbers of clients",
            Self::Hops => "the load at several hops (--hop)",
            Self::Requests => "the times of single requests",
            Self::Host => "this host while its load runs (--for)",
            Self::Server => "a server of this host (--pid or --port)",
            Self::Status => "the counters of the database (--engine)",
            Self::Replica => {
                "a replica, or a source with replicas, and a user who may read their state \
                 (--engine; REPLICATION CLIENT, SLAVE MONITOR or pg_monitor)"
            }
            Self::Clock => "a clock: this host (--for) or a packet capture",
            Self::Latency => {
                "an experiment that compares placements, and --latency (saiga topology --latency \
                 --json)"
            }
            Self::Counters => "hardware counters under two placements (--counters)",
            Self::Change => "an experiment with the change (the directory of `saiga compare`)",
        }
    }
}

/// A bottleneck, or a sign of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The bottleneck in a few words, as the subject of a sentence.
    pub bottleneck: String,
    pub kind: Kind,
    pub certainty: Certainty,
    /// How far the resource is used up, or which share of the response time it explains, between 0
    /// and 1. Ranks findings of the same certainty.
    pub share: f64,
    /// Three sentences: what limits the throughput, how the numbers show it, what to do.
    pub summary: [String; 3],
    pub evidence: Vec<Evidence>,
    pub next: Vec<Step>,
    /// The observation that would refute the finding.
    pub refuted_by: String,
}

/// The kind of a finding; later kinds are ranked first. Work that is refused limits the throughput
/// at any load of the CPUs, so errors come before resources that are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A bottleneck exists, and the finding does not name it.
    Sign,
    /// A resource that is used up.
    Cause,
    /// The kernel refuses or drops work.
    Error,
}

/// How certain a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The numbers fit the cause, and other causes as well.
    Possible,
    /// The numbers fit this cause better than others.
    Likely,
    /// The kernel or the server counted the event itself.
    Measured,
}

/// A number behind a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub quantity: String,
    /// The number with its unit.
    pub value: String,
    /// The threshold of the rule or the expected value, with its reason.
    pub threshold: String,
    /// Where the number comes from: a metric, a file, a hop.
    pub source: String,
}

/// What to do after a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Step {
    /// A setting that `saiga tune plan --set` changes.
    Knob(Knob),
    /// A command to run.
    Command(String),
    /// An action or a question.
    Advice(String),
}

/// Knobs of `saiga tune` that rules name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knob {
    Swappiness,
    Somaxconn,
    LocalPortRange,
    TimeWaitReuse,
    Mtu,
}

impl Knob {
    pub const ALL: [Self; 5] = [
        Self::Swappiness,
        Self::Somaxconn,
        Self::LocalPortRange,
        Self::TimeWaitReuse,
        Self::Mtu,
    ];

    /// The id in `saiga tune`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Swappiness => "vm.swappiness",
            Self::Somaxconn => "net.core.somaxconn",
            Self::LocalPortRange => "net.ipv4.ip_local_port_range",
            Self::TimeWaitReuse => "net.ipv4.tcp_tw_reuse",
            Self::Mtu => "nic.mtu",
        }
    }
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl Evidence {
    pub fn new(
        quantity: impl Into<String>,
        value: impl Into<String>,
        threshold: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        Self {
            quantity: quantity.into(),
            value: value.into(),
            threshold: threshold.into(),
            source: source.into(),
        }
    }
}

impl Finding {
    /// The order of findings: by kind, then by certainty, then by share.
    pub(crate) fn rank(&self, other: &Self) -> std::cmp::Ordering {
        let key = |one: &Self| (one.kind, one.certainty);
        key(other)
            .cmp(&key(self))
            .then(other.share.total_cmp(&self.share))
    }
}
