//! One change of a plan.

use serde::{Deserialize, Serialize};

use crate::about::{Risk, Stage};
use crate::target::Target;

/// One value, from what it was to what it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub knob: String,
    /// The device, node or file, where a knob has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub stage: Stage,
    pub risk: Risk,
    /// The raw text that the plan relies on; `None` if there is no such file yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The text to write.
    pub now: String,
    pub why: String,
    pub effect: String,
    pub target: Target,
    /// Values that the kernel changes with this one. They are recorded before the change and put
    /// back with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<Target>,
}

impl Step {
    /// The target, then its coupled values.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.target).chain(&self.coupled)
    }

    /// Knob and instance, such as `disk.scheduler@nvme0n1`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}@{instance}", self.knob),
            None => self.knob.clone(),
        }
    }
}
