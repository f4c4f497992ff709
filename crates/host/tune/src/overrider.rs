//! Programs that may change what a plan has set.

use serde::{Deserialize, Serialize};

use crate::about::Stage;
use crate::readings::Readings;
use crate::step::Step;

/// A program that runs here and sets the same values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrider {
    pub name: String,
    pub what: String,
    /// How both can be used.
    pub advice: String,
}

/// Process name, the stages that it touches, what it does, and what helps.
const KNOWN: [(&str, &[Stage], &str, &str); 6] = [
    (
        "tuned",
        &[
            Stage::Kernel,
            Stage::Memory,
            Stage::Network,
            Stage::Disk,
            Stage::Nic,
        ],
        "applies its profile again when it starts, and over sysctl.d",
        "put the values into a profile that includes the active one, or choose a profile that \
         does not set them (tuned-adm profile)",
    ),
    (
        "irqbalance",
        &[Stage::Affinity, Stage::Queues],
        "moves interrupts every 10 seconds",
        "stop it (irqbalance.active=inactive), or exclude the interrupts with --banirq",
    ),
    (
        "atuned",
        &[
            Stage::Kernel,
            Stage::Memory,
            Stage::Network,
            Stage::Disk,
            Stage::Affinity,
        ],
        "applies the profile that it finds for the load",
        "stop it while plans of Saiga are applied (systemctl stop atuned)",
    ),
    (
        "NetworkManager",
        &[Stage::Queues, Stage::Nic],
        "applies ethtool settings and MTU of a connection when it comes up",
        "set ethtool.* and mtu of the connection to the same values (nmcli connection modify)",
    ),
    (
        "scylla",
        &[Stage::Affinity, Stage::Steering, Stage::Queues, Stage::Disk],
        "runs perftune.py when it starts",
        "run perftune.py with --irq-cpu-mask of this plan",
    ),
    (
        "bpftune",
        &[Stage::Network],
        "changes sysctls of the network by what it observes",
        "stop it while plans of Saiga are applied",
    ),
];

pub(crate) fn of(readings: &Readings, steps: &[Step]) -> Vec<Overrider> {
    let touches = |stages: &[Stage]| steps.iter().any(|step| stages.contains(&step.stage));
    let is_stopped = |name: &str| {
        let mut steps = steps.iter();
        steps.any(|step| step.knob == format!("{name}.active") && step.now == "inactive")
    };
    let runs = |name: &str| readings.processes.contains(name) && !is_stopped(name);
    KNOWN
        .iter()
        .filter(|(name, stages, ..)| runs(name) && touches(stages))
        .map(|(name, _, what, advice)| Overrider {
            name: (*name).to_owned(),
            what: (*what).to_owned(),
            advice: (*advice).to_owned(),
        })
        .collect()
}
