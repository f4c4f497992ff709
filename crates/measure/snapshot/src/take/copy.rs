//! Copies all files into the snapshot and computes the hashes of their pieces.
//!
//! Bytes to copy are read once: each piece is hashed between read and write. If extents are
//! shared, the hash is computed from the snapshot's own file, which no other process writes to.

use std::path::Path;
use std::sync::Mutex;

use super::TakeError;
use super::survey::{FileAt, Survey};
use crate::content::{self, Chunk, Piece, chunks};
use crate::handle::{Handle, Support};
use crate::hash::{Hash, pieces_of};
use crate::manifest::Contents;
use crate::options::{Options, Reflink};
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::span::Span;
use crate::store::Store;
use crate::tree::Access;

/// A file to copy, with the state that its chunks share.
struct Job<'s> {
    number: u64,
    at: &'s FileAt,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_shared: bool,
    data: Vec<Span>,
    pieces: Vec<Option<Hash>>,
}

/// Copies the files of the survey and returns their contents in the same order.
pub(super) fn all(
    survey: &Survey<'_>,
    store: &Store<'_>,
    options: &Options,
    report: Report<'_>,
) -> Result<Vec<Contents>, TakeError> {
    let shares = shares(survey, store, options)?;
    check_space(survey, store, &shares)?;
    let jobs: Vec<Job<'_>> = survey.files.iter().zip(0..).map(Job::new).collect();
    let copier = Copier {
        survey,
        store,
        shares: &shares,
        jobs: &jobs,
    };
    let workers = options.workers();
    pool::each(workers, &jobs, |job| copier.begin(job))?;
    let sizes = || jobs.iter().map(|job| job.at.found.stat.size);
    let meter = Meter::new(Phase::Copy, sizes().sum(), report);
    pool::each(workers, &chunks(sizes()), |chunk| {
        copier.copy(chunk, &meter)
    })?;
    // A quick check compares the times of the snapshot's files with those of the originals.
    pool::each(workers, &jobs, |job| {
        let file = store.file(job.number)?;
        file.set_mtime(job.at.found.stat.mtime)
    })?;
    jobs.into_iter().map(Job::contents).collect()
}

/// For each part: whether the snapshot can share extents with its files.
fn shares(
    survey: &Survey<'_>,
    store: &Store<'_>,
    options: &Options,
) -> Result<Vec<bool>, TakeError> {
    let mut shares = Vec::new();
    for part in 0..survey.parts.len() {
        let first = survey.files.iter().find(|file| file.part == part);
        let probe = store.tree().unnamed_file();
        shares.push(match (options.reflink, first, probe) {
            (Reflink::Auto, Some(first), Some(probe)) => {
                probe.clone_from(&survey.open(first)?)? == Support::Done
            }
            (Reflink::Auto | Reflink::Never, _, _) => false,
        });
    }
    Ok(shares)
}

fn check_space(survey: &Survey<'_>, store: &Store<'_>, shares: &[bool]) -> Result<(), TakeError> {
    let copied = survey
        .files
        .iter()
        .filter(|file| shares.get(file.part) != Some(&true));
    let needed: u64 = copied.map(|file| file.found.stat.allocated).sum();
    let free = store.tree().free_bytes()?;
    if needed <= free {
        return Ok(());
    }
    let path = store.tree().path().to_owned();
    Err(TakeError::Space { path, free, needed })
}

struct Copier<'a, 'd> {
    survey: &'a Survey<'d>,
    store: &'a Store<'d>,
    shares: &'a [bool],
    jobs: &'a [Job<'a>],
}

impl<'d> Survey<'d> {
    fn open(&self, file: &FileAt) -> Result<Handle<'d>, TakeError> {
        let changed = |tree: &Path| TakeError::Changed(tree.join(&file.found.path));
        let part = self.parts.get(file.part);
        let tree = &part.ok_or_else(|| changed(Path::new("")))?.tree;
        let handle = tree.file(&file.found.path, Access::Read)?;
        // Another file may have been renamed to this path since the survey.
        if handle.stat()?.identity == file.found.stat.identity {
            Ok(handle)
        } else {
            Err(changed(tree.path()))
        }
    }
}

impl Copier<'_, '_> {
    /// Makes the snapshot's file: a clone, or a file of the right length without content.
    fn begin(&self, job: &Job<'_>) -> Result<(), TakeError> {
        let size = job.at.found.stat.size;
        let source = self.survey.open(job.at)?;
        let file = self.store.file(job.number)?;
        let may_share = self.shares.get(job.at.part) == Some(&true);
        let is_shared = may_share && file.clone_from(&source)? == Support::Done;
        if !is_shared {
            file.set_len(size)?;
        }
        let count = usize::try_from(pieces_of(size)).unwrap_or(usize::MAX);
        let data = if is_shared { &file } else { &source }.data(size)?;
        *job.lock() = State {
            is_shared,
            data,
            pieces: vec![None; count],
        };
        Ok(())
    }

    fn copy(&self, chunk: &Chunk, meter: &Meter<'_>) -> Result<(), TakeError> {
        let Some(job) = self.jobs.get(chunk.file) else {
            return Ok(());
        };
        let (is_shared, data) = {
            let state = job.lock();
            (state.is_shared, state.data.clone())
        };
        let size = job.at.found.stat.size;
        let file = self.store.file(job.number)?;
        let source = if is_shared {
            None
        } else {
            Some(self.survey.open(job.at)?)
        };
        let mut buffer = content::buffer();
        for index in chunk.pieces.clone() {
            let read_from = source.as_ref().unwrap_or(&file);
            let piece = content::read(read_from, &data, index, size, &mut buffer)?;
            if let (Some(_), Piece::Bytes(bytes)) = (&source, &piece) {
                content::write(&file, &data, index, size, bytes)?;
            }
            let Some(hash) = piece.hash() else {
                return Err(TakeError::Changed(read_from.path().to_owned()));
            };
            job.set(index, hash);
            meter.add(content::window(index, size).len())?;
        }
        Ok(())
    }
}

impl<'s> Job<'s> {
    fn new((at, number): (&'s FileAt, u64)) -> Self {
        let state = Mutex::new(State::default());
        Self { number, at, state }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    fn set(&self, index: u64, hash: Hash) {
        let mut state = self.lock();
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(piece) = state.pieces.get_mut(index) {
            *piece = Some(hash);
        }
    }

    fn contents(self) -> Result<Contents, TakeError> {
        let stat = &self.at.found.stat;
        let state = self.lock();
        let pieces: Option<Vec<Hash>> = state.pieces.iter().copied().collect();
        // Every chunk was copied, so every piece has a hash; the error is never returned.
        let changed = || TakeError::Changed(self.at.found.path.clone());
        Ok(Contents {
            size: stat.size,
            allocated: stat.allocated,
            stored: Some(self.number),
            pieces: pieces.ok_or_else(changed)?,
        })
    }
}
