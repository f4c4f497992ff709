//! Carrying a plan out: remove, make, fill, dress, in this order.

use super::plan::{FilePlan, Plan, Way, runs};
use super::{RestoreError, Restored};
use crate::content::{self, Piece};
use crate::disk::Fault;
use crate::handle::Can;
use crate::manifest::{Contents, Dress, Entry, Kind};
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::span;
use crate::stat::Sort;
use crate::tree::{Access, Tree};

/// Makes the parts, open as `trees`, what the snapshot says.
pub(super) fn out(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    report: Report<'_>,
) -> Result<Restored, RestoreError> {
    let mut done = Restored {
        bytes: plan.snapshot.manifest().bytes(),
        ..Restored::default()
    };
    for (target, tree) in plan.targets.iter().zip(trees) {
        for (path, sort) in &target.doomed {
            match sort {
                Sort::Directory => tree.remove_folder(path)?,
                Sort::File | Sort::Symlink | Sort::Special(_) => tree.remove(path)?,
            }
            done.removed += 1;
        }
    }
    make(plan, trees)?;
    fill(plan, trees, report)?;
    dress(plan, trees)?;
    for file in &plan.files {
        match &file.way {
            Way::Share => done.shared_bytes += file.bytes(),
            Way::Write(_) => done.written_bytes += file.bytes(),
        }
    }
    Ok(done)
}

/// Folders, links and files of the right length; further names last, when their files are there.
fn make(plan: &Plan<'_, '_>, trees: &[Tree<'_>]) -> Result<(), RestoreError> {
    for (target, tree) in plan.targets.iter().zip(trees) {
        let missing = |entry: &&Entry| !target.kept.contains(&entry.path);
        for entry in target.part.entries.iter().filter(missing) {
            match &entry.kind {
                // A part that was missing has been made already.
                Kind::Directory if entry.path.as_os_str().is_empty() => {}
                Kind::Directory => tree.make_folder(&entry.path)?,
                Kind::Symlink(leads) => tree.make_link(&entry.path, leads)?,
                Kind::File(_) => drop(tree.file(&entry.path, Access::Write)?),
                Kind::HardLink { .. } => {}
            }
        }
    }
    for (target, tree) in plan.targets.iter().zip(trees) {
        let missing = |entry: &&Entry| !target.kept.contains(&entry.path);
        for entry in target.part.entries.iter().filter(missing) {
            if let Kind::HardLink { part, path } = &entry.kind
                && let Some(other) = trees.get(*part)
            {
                tree.make_name(&entry.path, other, path)?;
            }
        }
    }
    Ok(())
}

/// The bytes.
fn fill(plan: &Plan<'_, '_>, trees: &[Tree<'_>], report: Report<'_>) -> Result<(), RestoreError> {
    let workers = plan.options.workers();
    let meter = Meter::new(
        Phase::Copy,
        plan.files.iter().map(FilePlan::bytes).sum(),
        report,
    );
    pool::each(workers, &plan.files, |file| {
        let Some(tree) = trees.get(file.part) else {
            return Ok(());
        };
        let target = tree.file(&file.entry.path, Access::Write)?;
        match &file.way {
            Way::Write(_) => target.set_len(file.contents.size)?,
            Way::Share => {
                let source = plan.stored(file.contents)?;
                target.set_len(0)?;
                if target.clone_from(&source)? == Can::Not {
                    let error = rustix::io::Errno::OPNOTSUPP;
                    return Err(Fault::at("share extents with", target.path())(error).into());
                }
                meter.add(file.contents.size)?;
            }
        }
        Ok::<(), RestoreError>(())
    })?;
    let written = plan.files.iter().enumerate();
    let lists: Vec<(usize, Vec<u64>)> = written
        .filter(|(_, file)| file.way != Way::Share)
        .map(|(index, file)| (index, file.pieces()))
        .collect();
    pool::each(workers, &runs(&lists), |(file, pieces)| {
        let file = plan.files.get(*file);
        match file.and_then(|file| Some((file, trees.get(file.part)?))) {
            Some((file, tree)) => write(plan, file, tree, pieces, &meter),
            None => Ok(()),
        }
    })
}

/// Writes some pieces of one file. A hole is not written: [`finish`] makes it.
fn write(
    plan: &Plan<'_, '_>,
    file: &FilePlan<'_>,
    tree: &Tree<'_>,
    pieces: &[u64],
    meter: &Meter<'_>,
) -> Result<(), RestoreError> {
    let source = plan.stored(file.contents)?;
    let target = tree.file(&file.entry.path, Access::Write)?;
    let size = file.contents.size;
    let data = source.data(size)?;
    let mut buffer = content::buffer();
    for index in pieces {
        let piece = content::read(&source, &data, *index, size, &mut buffer)?;
        // Read again, hence checked again: what is written is what was put away.
        file.check(*index, &piece, &source)?;
        if let Piece::Bytes(bytes) = piece {
            content::write(&target, &data, *index, size, bytes)?;
        }
        meter.add(content::window(*index, size).len())?;
    }
    Ok(())
}

/// Holes, reserved space, owners, modes, attributes and times; folders after what they hold.
fn dress(plan: &Plan<'_, '_>, trees: &[Tree<'_>]) -> Result<(), RestoreError> {
    let entries = plan.snapshot.manifest().files();
    let files: Vec<(usize, &Entry, &Contents)> = entries.collect();
    pool::each(
        plan.options.workers(),
        &files,
        |(part, entry, contents)| match trees.get(*part) {
            Some(tree) => finish(plan, tree, entry, contents),
            None => Ok(()),
        },
    )?;
    for (target, tree) in plan.targets.iter().zip(trees) {
        for entry in target.part.entries.iter().rev() {
            let Dress { mode, mtime, .. } = entry.dress;
            match &entry.kind {
                Kind::Directory => {
                    let folder = tree.folder_handle(&entry.path)?;
                    folder.dress(
                        Some((entry.dress.uid, entry.dress.gid)),
                        mode,
                        &entry.dress.attributes,
                    )?;
                    folder.set_mtime(mtime)?;
                }
                Kind::Symlink(_) => {
                    tree.dress_link(&entry.path, Some((entry.dress.uid, entry.dress.gid)), mtime)?
                }
                Kind::File(_) | Kind::HardLink { .. } => {}
            }
        }
    }
    Ok(())
}

fn finish(
    plan: &Plan<'_, '_>,
    tree: &Tree<'_>,
    entry: &Entry,
    contents: &Contents,
) -> Result<(), RestoreError> {
    let file = tree.file(&entry.path, Access::Write)?;
    let size = contents.size;
    if size == 0 {
        file.set_len(0)?;
    } else {
        let data = plan.stored(contents)?.data(size)?;
        content::match_holes(&file, &data, size)?;
        // Space that a server has reserved for its logs stays reserved.
        if contents.allocated >= size && !span::holes(&data, size).is_empty() {
            file.reserve(size)?;
        }
    }
    let Dress {
        mode,
        mtime,
        attributes,
        ..
    } = &entry.dress;
    file.dress(Some((entry.dress.uid, entry.dress.gid)), *mode, attributes)?;
    file.set_mtime(*mtime)?;
    Ok(())
}
