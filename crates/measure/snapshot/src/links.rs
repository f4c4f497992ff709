//! Symbolic links that lead out of the parts. Their targets are not in the snapshot.

use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::Kind;
use crate::name::shown;
use crate::snapshot::Snapshot;

/// A symbolic link whose target is outside of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalLink {
    pub link: PathBuf,
    /// The target, with all links resolved.
    pub target: PathBuf,
}

impl fmt::Display for ExternalLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} leads to {}", shown(&self.link), shown(&self.target))
    }
}

/// The links with their targets, joined for a message.
pub(crate) fn list(links: &[ExternalLink]) -> String {
    let texts: Vec<String> = links.iter().map(ExternalLink::to_string).collect();
    texts.join(", ")
}

/// The distinct targets, joined for a message.
pub(crate) fn targets(links: &[ExternalLink]) -> String {
    let mut targets: Vec<String> = links.iter().map(|link| shown(&link.target)).collect();
    targets.sort();
    targets.dedup();
    targets.join(" ")
}

/// The kind of target that a symbolic link has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The target is in a part or does not exist, so the snapshot lacks nothing.
    Contained,
    /// A directory outside all parts; its data would be missing.
    Directory(ExternalLink),
    /// A file or a block device outside all parts: a table on another drive, or a certificate.
    File(ExternalLink),
    /// A special file without data, such as `/dev/null`.
    Special(ExternalLink),
}

/// Follows `link`, an absolute path.
pub(crate) fn follow(link: &Path, parts: &[PathBuf]) -> Result<Target, Fault> {
    let target = match link.canonicalize() {
        // Such a link is equally dangling before the snapshot and after a restore.
        Err(error) if is_dangling(&error) => return Ok(Target::Contained),
        target => target.map_err(Fault::at("follow the link", link))?,
    };
    if parts.iter().any(|part| target.starts_with(part)) {
        return Ok(Target::Contained);
    }
    let metadata = target.metadata().map_err(Fault::at("stat", &target))?;
    let file_type = metadata.file_type();
    let link = link.to_owned();
    let external = ExternalLink { link, target };
    Ok(if file_type.is_dir() {
        Target::Directory(external)
    } else if file_type.is_file() || file_type.is_block_device() {
        Target::File(external)
    } else {
        Target::Special(external)
    })
}

/// Whether a link cannot be resolved: a missing name, a file in place of a directory, or a loop.
fn is_dangling(error: &io::Error) -> bool {
    let dangling = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP];
    error
        .raw_os_error()
        .is_some_and(|errno| dangling.contains(&errno))
}

/// Links in the directories of `snapshot` that now lead to files outside of these directories. The
/// files are not in the snapshot, and a restore does not change them.
pub fn linked_files(snapshot: &Snapshot) -> Result<Vec<ExternalLink>, Fault> {
    let paths = snapshot.parts();
    let mut found = Vec::new();
    for part in &snapshot.manifest().parts {
        let links = part.entries.iter();
        for entry in links.filter(|entry| matches!(entry.kind, Kind::Symlink(_))) {
            if let Target::File(external) = follow(&part.path.join(&entry.path), &paths)? {
                found.push(external);
            }
        }
    }
    Ok(found)
}
