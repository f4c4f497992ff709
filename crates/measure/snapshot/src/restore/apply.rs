//! Executes a plan: removes names, makes files, fills them and sets their metadata, in this order.

use super::plan::{FilePlan, Plan, Transfer, runs};
use super::{RestoreError, Restored};
use crate::content::{self, Piece};
use crate::disk::Fault;
use crate::handle::Support;
use crate::manifest::{Contents, Entry, Kind, Metadata};
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::span;
use crate::stat::FileType;
use crate::tree::{Access, Tree};

/// Changes the parts, open as `trees`, into the state of the snapshot.
pub(super) fn apply(
    plan: &Plan<'_, '_>,
    trees: &[Tree<'_>],
    report: Report<'_>,
) -> Result<Restored, RestoreError> {
    let mut done = Restored {
        bytes: plan.snapshot.manifest().bytes(),
        ..Restored::default()
    };
    for (target, tree) in plan.targets.iter().zip(trees) {
        for (path, file_type) in &target.to_remove {
            match file_type {
                FileType::Directory => tree.remove_folder(path)?,
                FileType::File | FileType::Symlink | FileType::Special(_) => tree.remove(path)?,
            }
            done.removed += 1;
        }
    }
    make(plan, trees)?;
    fill(plan, trees, report)?;
    set_metadata(plan, trees)?;
    for file in &plan.files {
        match &file.transfer {
            Transfer::Share => done.shared_bytes += file.bytes(),
            Transfer::Write(_) => done.written_bytes += file.bytes(),
        }
    }
    Ok(done)
}

/// Makes missing folders, links and empty files. Hard links are made last, when their files exist.
fn make(plan: &Plan<'_, '_>, trees: &[Tree<'_>]) -> Result<(), RestoreError> {
    for (target, tree) in plan.targets.iter().zip(trees) {
        let missing = |entry: &&Entry| !target.kept.contains(&entry.path);
        for entry in target.part.entries.iter().filter(missing) {
            match &entry.kind {
                // `open` has made a missing part.
                Kind::Directory if entry.path.as_os_str().is_empty() => {}
                Kind::Directory => tree.make_folder(&entry.path)?,
                Kind::Symlink(target) => tree.make_link(&entry.path, target)?,
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
                tree.make_hard_link(&entry.path, other, path)?;
            }
        }
    }
    Ok(())
}

/// Gives all files their length and content, by sharing extents or by writing pieces.
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
        match &file.transfer {
            Transfer::Write(_) => target.set_len(file.contents.size)?,
            Transfer::Share => {
                let source = plan.stored(file.contents)?;
                target.set_len(0)?;
                if target.clone_from(&source)? == Support::Unsupported {
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
        .filter(|(_, file)| file.transfer != Transfer::Share)
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

/// Writes some pieces of one file, except holes, which [`finish`] makes.
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
        // The bytes were read again, so they are checked again before they are written.
        file.check(*index, &piece, &source)?;
        if let Piece::Bytes(bytes) = piece {
            content::write(&target, &data, *index, size, bytes)?;
        }
        meter.add(content::window(*index, size).len())?;
    }
    Ok(())
}

/// Finishes all files and sets the metadata of folders and links. Folders come after their entries,
/// which would change the folder's modification time.
fn set_metadata(plan: &Plan<'_, '_>, trees: &[Tree<'_>]) -> Result<(), RestoreError> {
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
            let Metadata { mode, mtime, .. } = entry.metadata;
            match &entry.kind {
                Kind::Directory => {
                    let folder = tree.folder_handle(&entry.path)?;
                    folder.set_metadata(
                        Some((entry.metadata.uid, entry.metadata.gid)),
                        mode,
                        &entry.metadata.attributes,
                    )?;
                    folder.set_mtime(mtime)?;
                }
                Kind::Symlink(_) => tree.set_link_metadata(
                    &entry.path,
                    Some((entry.metadata.uid, entry.metadata.gid)),
                    mtime,
                )?,
                Kind::File(_) | Kind::HardLink { .. } => {}
            }
        }
    }
    Ok(())
}

/// Makes the holes of a file, reserves its space and sets its metadata.
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
        // The original had blocks for its holes: a server had reserved space for its logs.
        if contents.allocated >= size && !span::holes(&data, size).is_empty() {
            file.reserve(size)?;
        }
    }
    let Metadata {
        mode,
        mtime,
        attributes,
        ..
    } = &entry.metadata;
    file.set_metadata(
        Some((entry.metadata.uid, entry.metadata.gid)),
        *mode,
        attributes,
    )?;
    file.set_mtime(*mtime)?;
    Ok(())
}
