//! Calibration: the number of operations that takes the planned length of a run.
//!
//! In: runs with trial numbers of operations. Out: a number per arm and calibration key, found once
//! and recorded in the campaign.

use crate::campaign::Calibrated;
use crate::plan::{Cell, RunSize};
use crate::workload::{Failure, Load, Measured, Workload};

use super::{Engine, measure};

/// Maximum number of runs per calibration.
const MAX_CALIBRATIONS: u32 = 4;
/// Maximum number of operations per run, because redis-benchmark counts in an `int`.
const MAX_OPERATIONS: u64 = 2_000_000_000;

impl<W: Workload> Engine<'_, '_, W> {
    /// Calibrates an arm for the load of a cell, once per calibration key. Arms that vary another
    /// arm use the calibration of that arm.
    pub(super) fn calibrate(
        &mut self,
        cell_index: usize,
        arm: usize,
        pair: u32,
    ) -> Result<(), Failure> {
        let plan = self.plan;
        let RunSize::Lasting(length) = plan.size else {
            return Ok(());
        };
        let cell = &plan.cells[cell_index];
        if !cell.load.calibrates() {
            return Ok(());
        }
        let arm = self.calibrated_by[arm];
        let key = self.calibration_key(cell, arm);
        if self.operations.contains_key(&key) || self.given_up.contains(&(cell_index, arm)) {
            return Ok(());
        }
        let name = self.names[arm].clone();
        let recorded = self.record(|campaign| campaign.calibrated(&key.0, &name))?;
        let calibrated = match recorded {
            Some(calibrated) => calibrated,
            None => {
                let wanted_s = length.as_secs_f64() * cell.load.length_factor();
                let (operations, failures) = self.find_operations(cell, arm, pair, wanted_s)?;
                let calibrated = Calibrated {
                    load: key.0.clone(),
                    arm: name,
                    operations,
                    failures,
                };
                self.record(|campaign| campaign.add_calibrated(calibrated.clone()))?;
                calibrated
            }
        };
        for reason in &calibrated.failures {
            self.count_failure(cell_index, arm, reason);
        }
        self.operations.insert(key, calibrated.operations);
        Ok(())
    }

    /// Tries numbers of operations until a run takes about `wanted_s` seconds. Returns the last
    /// number and the reasons of failed attempts.
    fn find_operations(
        &mut self,
        cell: &Cell<W::Load>,
        arm: usize,
        pair: u32,
        wanted_s: f64,
    ) -> Result<(u64, Vec<String>), Failure> {
        let least = cell.load.least_operations();
        let mut operations = cell.load.first_guess().max(least);
        let mut failures = Vec::new();
        for _ in 0..MAX_CALIBRATIONS {
            self.announce(cell, arm, pair, true);
            let limit = self.limit(cell);
            match measure(self.workload, arm, cell, operations, limit, self.interrupt) {
                Ok(Measured { seconds, .. }) => {
                    operations = scaled(operations, wanted_s / seconds.max(1e-4)).max(least);
                    if seconds >= wanted_s / 2.0 {
                        break;
                    }
                }
                Err(Failure::Run { reason }) => failures.push(reason),
                Err(failure) => return Err(failure),
            }
        }
        Ok((operations, failures))
    }

    fn calibration_key(&self, cell: &Cell<W::Load>, arm: usize) -> (String, usize) {
        let load = cell.load.calibration_key();
        (
            format!("{load} {} {}", cell.placement.name(), cell.hog.name()),
            arm,
        )
    }

    pub(super) fn operations_of(&self, cell: &Cell<W::Load>, arm: usize) -> u64 {
        match self.plan.size {
            RunSize::Operations(operations) => operations,
            RunSize::Timed(_) | RunSize::Lasting(_) => {
                let key = self.calibration_key(cell, self.calibrated_by[arm]);
                let known = self.operations.get(&key).copied();
                known.unwrap_or_else(|| cell.load.first_guess())
            }
        }
    }
}

/// `operations` times `factor`, which is limited to the range 0.01 to 30.
fn scaled(operations: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let scaled = (operations as f64 * factor.clamp(0.01, 30.0)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and clamped right after"
    )]
    let scaled = scaled as u64;
    scaled.clamp(1, MAX_OPERATIONS)
}
