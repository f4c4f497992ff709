//! Replays of one trace, each made once: a placement that was simulated before is known.

use std::rc::Rc;

use saiga_ftl::replay::{self, Case, Footprint, Options, Placement, ReplayError};
use saiga_ftl::steady::Report;

use crate::compare::Condition;
use crate::sets::{Joined, Placed};

/// A trace, and what is known of its replays.
#[derive(Debug)]
pub struct Replays<'a> {
    footprint: &'a Footprint,
    base: &'a Options,
    known: Vec<(Key, Rc<Case>)>,
}

/// All that a replay depends on, beside what is the same for all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    condition: Condition,
    placement: Placement,
    /// `None` where there is one stream, whatever the rules.
    placed: Option<Rc<Placed>>,
}

impl Key {
    pub(crate) fn new(set: &Joined, placement: Placement, condition: Condition) -> Self {
        Self {
            condition,
            placement,
            placed: (placement != Placement::OneStream).then(|| Rc::clone(&set.placed)),
        }
    }
}

impl<'a> Replays<'a> {
    /// None yet. `base` is the device but for what its conditions say.
    #[must_use]
    pub fn new(footprint: &'a Footprint, base: &'a Options) -> Self {
        Self {
            footprint,
            base,
            known: Vec::new(),
        }
    }

    /// The trace in pages.
    #[must_use]
    pub fn footprint(&self) -> &'a Footprint {
        self.footprint
    }

    /// The device under a condition.
    #[must_use]
    pub fn device(&self, condition: &Condition) -> Options {
        condition.device(self.base)
    }

    pub(crate) fn is_known(&self, key: &Key) -> bool {
        self.known.iter().any(|(known, _)| known == key)
    }

    /// What a set does under a placement and a condition.
    ///
    /// # Errors
    /// The device cannot be, or `report` ended the run.
    pub fn case(
        &mut self,
        set: &Joined,
        placement: Placement,
        condition: Condition,
        report: Report<'_>,
    ) -> Result<Rc<Case>, ReplayError> {
        let key = Key::new(set, placement, condition);
        if let Some((_, case)) = self.known.iter().find(|(known, _)| *known == key) {
            return Ok(Rc::clone(case));
        }
        let device = self.device(&condition);
        let case = replay::replay(self.footprint, set, placement, &device, report)?;
        let case = Rc::new(case);
        self.known.push((key, Rc::clone(&case)));
        Ok(case)
    }
}
