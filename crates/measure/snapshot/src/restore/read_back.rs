//! Reads the restored parts back from the disk and compares them with the snapshot.

use std::collections::HashMap;

use super::RestoreError;
use super::plan::{FilePlan, Plan, runs};
use crate::compare::{self, Difference};
use crate::content;
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::scan::scan;
use crate::tree::{Access, Tree};

/// Compares all names and metadata, and the written content if content is checked. Pieces that
/// were not written had been compared before.
pub(super) fn check(
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
    check_bytes(plan, trees, report)
}

fn check_bytes(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    report: Report<'_>,
) -> Result<(), RestoreError> {
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
        // All data have been flushed, so the next read comes from the disk.
        handle.drop_cache(size);
        let data = handle.data(size)?;
        let mut buffer = content::buffer();
        for index in *pieces {
            let piece = content::read(&handle, &data, *index, size, &mut buffer)?;
            if !file.is_right(*index, &piece) {
                let path = handle.path().to_owned();
                let what = "content differs";
                return Err(RestoreError::Differs(Difference { path, what }));
            }
            meter.add(content::window(*index, size).len())?;
        }
        Ok::<(), RestoreError>(())
    })
}
