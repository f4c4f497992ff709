//! Surveys the parts before the copy: lists all names, and each file once even if it has several.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::TakeError;
use crate::disk::{Disk, Fault};
use crate::handle::Attributes;
use crate::links::{self, Target};
use crate::manifest::{Contents, Entry, Kind, Manifest, Metadata, Part};
use crate::name::shown;
use crate::options::LinkedFiles;
use crate::running;
use crate::scan::{Found, mounted_inside, scan};
use crate::stat::{FileType, Identity};
use crate::tree::{Access, Tree};

/// The state of all parts before the copy.
pub(super) struct Survey<'d> {
    pub(super) parts: Vec<Surveyed<'d>>,
    /// Files that are not empty; the index is the number of the copy.
    pub(super) files: Vec<FileAt>,
    /// The first name of each file with several names.
    first_names: HashMap<Identity, (usize, PathBuf)>,
    notes: Vec<String>,
}

pub(super) struct Surveyed<'d> {
    pub(super) tree: Tree<'d>,
    /// All names, including those that the snapshot leaves out.
    found: Vec<Found>,
}

/// A file, identified by its first name.
pub(super) struct FileAt {
    pub(super) part: usize,
    pub(super) found: Found,
}

impl<'d> Survey<'d> {
    pub(super) fn of(
        disk: &'d Disk,
        paths: &[PathBuf],
        linked_files: LinkedFiles,
    ) -> Result<Self, TakeError> {
        let mut survey = Self {
            parts: Vec::new(),
            files: Vec::new(),
            first_names: HashMap::new(),
            notes: Vec::new(),
        };
        for path in paths {
            let tree = Tree::open(disk, path)?;
            let found = scan(&tree)?;
            if let Some(inside) = mounted_inside(&found) {
                return Err(TakeError::MountInside(tree.full_path(inside)));
            }
            survey.parts.push(Surveyed { tree, found });
        }
        survey.check_links(paths, linked_files)?;
        for index in 0..survey.parts.len() {
            survey.collect(index);
        }
        survey.note_outer_names();
        Ok(survey)
    }

    /// Refuses links to data that the snapshot would lack, and notes links to other files.
    fn check_links(&mut self, paths: &[PathBuf], files: LinkedFiles) -> Result<(), TakeError> {
        let (mut to_directories, mut to_files) = (Vec::new(), Vec::new());
        for Surveyed { tree, found } in &self.parts {
            let links = found.iter();
            for link in links.filter(|found| found.stat.file_type == FileType::Symlink) {
                let external = match links::follow(&tree.full_path(&link.path), paths)? {
                    Target::Contained => continue,
                    Target::Directory(external) => {
                        to_directories.push(external);
                        continue;
                    }
                    Target::File(external) if files == LinkedFiles::Refuse => {
                        to_files.push(external);
                        continue;
                    }
                    Target::File(external) | Target::Special(external) => external,
                };
                let note = format!("{external}, which is not in the snapshot");
                self.notes.push(note);
            }
        }
        if !to_directories.is_empty() {
            return Err(TakeError::LinkedDirectories(to_directories));
        }
        if !to_files.is_empty() {
            return Err(TakeError::LinkedFiles(to_files));
        }
        Ok(())
    }

    /// Adds the files and the notes of one part.
    fn collect(&mut self, index: usize) {
        let Some(Surveyed { tree, found }) = self.parts.get(index) else {
            return;
        };
        for found in found {
            let path = tree.full_path(&found.path);
            match found.stat.file_type {
                FileType::Special(kind) => {
                    let note = format!("{} is left out: it is a {kind}", shown(&path));
                    self.notes.push(note);
                }
                FileType::File if is_pid_file(found) => {
                    self.notes.push(running::stale_pid_file(&path));
                }
                FileType::File => {
                    let name = (index, found.path.clone());
                    let is_first = found.stat.links == 1
                        || *self
                            .first_names
                            .entry(found.stat.identity)
                            .or_insert(name.clone())
                            == name;
                    if is_first && found.stat.size > 0 {
                        self.files.push(FileAt {
                            part: index,
                            found: found.clone(),
                        });
                    }
                }
                FileType::Directory | FileType::Symlink => {}
            }
        }
    }

    /// Notes files with hard links outside of the parts, because a restore separates them.
    fn note_outer_names(&mut self) {
        let mut names: HashMap<Identity, u32> = HashMap::new();
        let all = self.parts.iter().flat_map(|part| &part.found);
        for found in all.filter(|found| found.stat.file_type == FileType::File) {
            *names.entry(found.stat.identity).or_default() += 1;
        }
        for Surveyed { tree, found } in &self.parts {
            let files = found
                .iter()
                .filter(|found| found.stat.file_type == FileType::File);
            for Found { path, stat, .. } in files {
                if names.get(&stat.identity) != Some(&stat.links) {
                    let path = shown(&tree.full_path(path));
                    let note = format!(
                        "{path} has hard links outside of the directories; a restore makes it a \
                         separate file"
                    );
                    self.notes.push(note);
                }
            }
        }
    }

    /// Scans again and fails if a file has changed since the survey.
    pub(super) fn check_unchanged(&self) -> Result<(), TakeError> {
        for Surveyed { tree, found } in &self.parts {
            let now = scan(tree)?;
            let pairs = found.iter().zip(&now);
            let differs = pairs.clone().find(|(before, now)| !before.is_same(now));
            let differs = differs.map(|(before, _)| before);
            let longer = found.get(now.len()).or_else(|| now.get(found.len()));
            if let Some(changed) = differs.or(longer) {
                return Err(TakeError::Changed(tree.full_path(&changed.path)));
            }
        }
        Ok(())
    }

    /// The manifest of the surveyed parts; `contents` has the order of `files`.
    pub(super) fn manifest(
        &self,
        taken: String,
        contents: Vec<Contents>,
    ) -> Result<Manifest, Fault> {
        let mut contents = contents.into_iter();
        let mut parts = Vec::new();
        for (index, Surveyed { tree, found }) in self.parts.iter().enumerate() {
            let mut entries = Vec::new();
            for found in found.iter().filter(|found| !is_left_out(found)) {
                let kind = self.kind(index, found, &mut contents);
                entries.push(Entry {
                    path: found.path.clone(),
                    metadata: metadata(tree, found, &kind)?,
                    kind,
                });
            }
            let root = found.first();
            parts.push(Part {
                path: tree.path().to_owned(),
                is_mount_point: root.is_some_and(|root| root.stat.is_mount_point),
                entries,
            });
        }
        Ok(Manifest {
            taken,
            notes: self.notes.clone(),
            parts,
        })
    }

    /// The manifest's kind for `found`. For a file that is not empty, takes the next of `contents`.
    fn kind(
        &self,
        part: usize,
        found: &Found,
        contents: &mut impl Iterator<Item = Contents>,
    ) -> Kind {
        let first = self.first_names.get(&found.stat.identity);
        match (found.stat.file_type, &found.target, first) {
            (FileType::Symlink, Some(target), _) => Kind::Symlink(target.clone()),
            (FileType::File, _, Some((first, path))) if (*first, path) != (part, &found.path) => {
                Kind::HardLink {
                    part: *first,
                    path: path.clone(),
                }
            }
            (FileType::File, _, _) if found.stat.size > 0 => {
                Kind::File(contents.next().unwrap_or_else(empty))
            }
            (FileType::File, _, _) => Kind::File(empty()),
            (FileType::Directory | FileType::Special(_) | FileType::Symlink, _, _) => {
                Kind::Directory
            }
        }
    }
}

fn empty() -> Contents {
    Contents {
        size: 0,
        allocated: 0,
        stored: None,
        pieces: Vec::new(),
    }
}

fn is_left_out(found: &Found) -> bool {
    matches!(found.stat.file_type, FileType::Special(_)) || is_pid_file(found)
}

/// Whether this is a pid file. No server is running, so its server did not end cleanly.
fn is_pid_file(found: &Found) -> bool {
    found.path == Path::new(running::PID_FILE) && found.stat.file_type == FileType::File
}

fn metadata(tree: &Tree<'_>, found: &Found, kind: &Kind) -> Result<Metadata, Fault> {
    let Found { path, stat, .. } = found;
    let attributes = match kind {
        Kind::Directory => tree.folder_handle(path)?.attributes()?,
        Kind::File(_) => tree.file(path, Access::Read)?.attributes()?,
        // A hard link shares the attributes of its file; symbolic links have no user attributes.
        Kind::HardLink { .. } | Kind::Symlink(_) => Attributes::new(),
    };
    Ok(Metadata {
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        attributes,
    })
}
