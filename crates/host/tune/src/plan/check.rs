//! Reads `plan.toml`, which may come from another host or a text editor.
//!
//! A plan is applied by root, so its steps are compared with the registry: a step may write only
//! what a knob writes, and with the risk that the knob has.

use super::{Plan, VERSION, id, known, template};
use crate::about::{Risk, Stage};
use crate::knob::Place;
use crate::knobs;
use crate::persist::{self, binding, grub};
use crate::step::Step;
use crate::target::Target;

/// Why a text is not a plan that may be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("not a plan: {0}")]
    Syntax(String),
    #[error("a plan of format {0}; this program reads format {VERSION}")]
    Version(u32),
    #[error("the steps do not match the plan's id: it was edited; make a new plan instead")]
    Edited,
    #[error("step {name}: {reason}")]
    Step { name: String, reason: String },
}

impl Plan {
    /// Reads the text of `plan.toml`.
    ///
    /// # Errors
    /// As [`check`](Self::check), and for a text that is not a plan.
    pub fn from_toml(text: &str) -> Result<Self, LoadError> {
        let plan: Self = toml::from_str(text).map_err(|e| LoadError::Syntax(e.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Whether the plan is one that [`plan`](super::plan) may have made.
    ///
    /// # Errors
    /// Another format, an id that does not match, or a step that no knob makes.
    pub fn check(&self) -> Result<(), LoadError> {
        if self.version != VERSION {
            return Err(LoadError::Version(self.version));
        }
        for step in &self.steps {
            check_step(step).map_err(|reason| LoadError::Step {
                name: step.name(),
                reason: reason.to_owned(),
            })?;
        }
        if self.id != id(&self.facts, &self.steps) {
            return Err(LoadError::Edited);
        }
        Ok(())
    }
}

fn check_step(step: &Step) -> Result<(), &'static str> {
    if binding::is_possible(&step.target, &step.now) {
        let is_right = step.stage == Stage::Persist && step.risk == Risk::Restart;
        return if is_right {
            Ok(())
        } else {
            Err("its risk is not that of a drop-in")
        };
    }
    if grub::is_possible(&step.target, &step.now) {
        let is_right = step.stage == Stage::Persist && step.risk == Risk::Reboot;
        return if is_right {
            Ok(())
        } else {
            Err("its risk is not that of a parameter of the kernel")
        };
    }
    if step.stage == Stage::Persist {
        let is_ours = persist::targets().any(|target| target == step.target);
        return match (is_ours, persist::is_possible(&step.target, &step.now)) {
            (false, _) => Err("not a file of Saiga's"),
            (true, false) => Err("not a text that a plan writes"),
            (true, true) if step.risk != Risk::Safe => Err("its risk is not that of the knob"),
            (true, true) => Ok(()),
        };
    }
    let knob = knobs::knob(&step.knob).ok_or("there is no such knob")?;
    if knob.risk != step.risk || knob.stage != step.stage {
        return Err("its risk is not that of the knob");
    }
    if knob.domain.check(&step.now).is_err() {
        return Err("the knob cannot have this value");
    }
    let place = known::place(knob, &step.target);
    let place = place.ok_or("the target is not one that the knob has")?;
    if step.coupled.is_empty() != place.coupled.is_empty() {
        return Err("coupled values are missing, or are not those of the knob");
    }
    if !step
        .coupled
        .iter()
        .all(|coupled| is_coupled(&place, step, coupled))
    {
        return Err("a coupled value is not one that the knob has");
    }
    let is_name = |name: &String| !name.chars().any(char::is_control);
    if !step.instance.iter().all(is_name) {
        return Err("the name of the device has a control character");
    }
    Ok(())
}

/// Whether a coupled value is one of this knob and of the same device.
fn is_coupled(place: &Place, step: &Step, coupled: &Target) -> bool {
    let device = template::device(&place.target, &step.target);
    place.coupled.iter().any(|known| {
        let of_coupled = template::device(known, coupled);
        let is_same = of_coupled.is_none() || device.is_none() || of_coupled == device;
        template::matches(known, coupled) && is_same
    })
}
