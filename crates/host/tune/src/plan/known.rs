//! What the registry can write, on any machine.

use super::template;
use crate::knob::{Knob, Place};
use crate::knobs;
use crate::target::Target;

/// The place of a knob on the template machine that stands for this target.
pub(super) fn place(knob: &Knob, target: &Target) -> Option<Place> {
    let mut places = knob.places(&template::machine()).into_iter();
    places.find(|place| template::matches(&place.target, target))
}

/// Whether some knob may set this target to this value.
pub(crate) fn is_known(target: &Target, value: &str) -> bool {
    knobs::registry().any(|knob| knob.domain.check(value).is_ok() && place(knob, target).is_some())
}

/// Whether some knob may set the file at this path to this value, whatever its form.
pub(crate) fn is_known_path(path: &str, value: &str) -> bool {
    let is_path = |place: &Place| match &place.target {
        Target::File { path: known, .. } => template::is_path(known, path),
        Target::OwnFile { .. } | Target::Service { .. } | Target::Nic { .. } => false,
    };
    knobs::registry().any(|knob| {
        knob.domain.check(value).is_ok() && knob.places(&template::machine()).iter().any(is_path)
    })
}
