//! Caches the replays of one trace: each placement is simulated once.

use std::rc::Rc;

use saiga_ftl::replay::{self, Case, Footprint, Options, Placement, ReplayError};
use saiga_ftl::steady::Report;

use crate::compare::Condition;
use crate::sets::{Assignment, Joined};

/// A trace and the results of its replays.
#[derive(Debug)]
pub struct Replays<'a> {
    footprint: &'a Footprint,
    base: &'a Options,
    known: Vec<(Key, Rc<Case>)>,
}

/// The parameters that distinguish replays of one trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    condition: Condition,
    placement: Placement,
    /// `None` for one stream, which has no rules.
    assignment: Option<Rc<Assignment>>,
}

impl Key {
    pub(crate) fn new(set: &Joined, placement: Placement, condition: Condition) -> Self {
        Self {
            condition,
            placement,
            assignment: (placement != Placement::OneStream).then(|| Rc::clone(&set.assignment)),
        }
    }
}

impl<'a> Replays<'a> {
    /// Creates a cache. `base` is the device; conditions replace some of its options.
    #[must_use]
    pub fn new(footprint: &'a Footprint, base: &'a Options) -> Self {
        Self {
            footprint,
            base,
            known: Vec::new(),
        }
    }

    /// Returns the trace in pages.
    #[must_use]
    pub fn footprint(&self) -> &'a Footprint {
        self.footprint
    }

    /// Returns the device under a condition.
    #[must_use]
    pub fn device(&self, condition: &Condition) -> Options {
        condition.device(self.base)
    }

    pub(crate) fn is_known(&self, key: &Key) -> bool {
        self.known.iter().any(|(known, _)| known == key)
    }

    /// Returns the result of a set under a placement and a condition; simulates it the first time.
    ///
    /// # Errors
    /// The device is not valid, or `report` ended the run.
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
