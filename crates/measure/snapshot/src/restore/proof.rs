//! Whether the parts are now what the snapshot says: read back, not remembered.

use std::collections::HashMap;

use super::RestoreError;
use super::plan::{FilePlan, Plan, runs};
use crate::compare::{self, Difference};
use crate::content;
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::scan::scan;
use crate::tree::{Access, Tree};

/// Compares all names and dresses, and the bytes that were written where bytes are checked. Those
/// that were not written had been read, and were right.
pub(super) fn of(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    report: Report<'_>,
) -> Result<(), RestoreError> {
    let mut identities = HashMap::new();
    for (index, (target, tree)) in plan.targets.iter().zip(trees).enumerate() {
        let found = scan(tree)?;
        let differences = compare::part(index, target.part, tree, &found, &mut identities)?;
        if let Some(first) = differences.into_iter().next() {
            return Err(RestoreError::Differs(first));
        }
    }
    bytes(plan, trees, report)
}

fn bytes(plan: &Plan<'_, '_>, trees: &[Tree<'_>], report: Report<'_>) -> Result<(), RestoreError> {
    let checked = plan.files.iter().filter(|file| plan.is_thorough(file.part));
    let checked: Vec<&FilePlan<'_>> = checked.collect();
    let lists: Vec<(usize, Vec<u64>)> = checked
        .iter()
        .map(|file| file.pieces())
        .enumerate()
        .collect();
    let total = checked.iter().map(|file| file.bytes()).sum();
    let meter = Meter::new(Phase::ReadBack, total, report);
    pool::each(plan.options.workers(), &runs(&lists), |(file, pieces)| {
        let file = checked.get(*file);
        let Some((file, tree)) = file.and_then(|file| Some((file, trees.get(file.part)?))) else {
            return Ok(());
        };
        let handle = tree.file(&file.entry.path, Access::Read)?;
        let size = file.contents.size;
        // Everything has been flushed: the next read is the disk's answer.
        handle.forget(size);
        let data = handle.data(size)?;
        let mut buffer = content::buffer();
        for index in *pieces {
            let piece = content::read(&handle, &data, *index, size, &mut buffer)?;
            if !file.is_right(*index, &piece) {
                let path = handle.path().to_owned();
                let what = "its bytes";
                return Err(RestoreError::Differs(Difference { path, what }));
            }
            meter.add(content::window(*index, size).len())?;
        }
        Ok::<(), RestoreError>(())
    })
}
