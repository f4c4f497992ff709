//! Where the symbolic links of the parts lead: what lies outside is not in the snapshot.

use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::disk::Fault;
use crate::manifest::Kind;
use crate::name::shown;
use crate::snapshot::Snapshot;

/// A link out of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The link.
    pub link: PathBuf,
    /// Where it leads, without links.
    pub target: PathBuf,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} leads to {}", shown(&self.link), shown(&self.target))
    }
}

/// Strays, joined for a message.
pub(crate) fn list(strays: &[Stray]) -> String {
    let texts: Vec<String> = strays.iter().map(Stray::to_string).collect();
    texts.join(", ")
}

/// The directories that must be named as well, each once.
pub(crate) fn targets(strays: &[Stray]) -> String {
    let mut targets: Vec<String> = strays.iter().map(|stray| shown(&stray.target)).collect();
    targets.sort();
    targets.dedup();
    targets.join(" ")
}

/// What lies at the end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leads {
    /// Into a part, or nowhere.
    Well,
    /// To a directory that is not a part: its data would be missing.
    ToDirectory(Stray),
    /// To a file outside all parts, or to a disk: a table on another drive, or a certificate.
    ToFile(Stray),
    /// To something that holds no data: `/dev/null`.
    ToSpecial(Stray),
}

/// Follows `link`, an absolute path.
pub(crate) fn follow(link: &Path, parts: &[PathBuf]) -> Result<Leads, Fault> {
    let target = match link.canonicalize() {
        // The server gets nowhere either, before a snapshot and after a restore.
        Err(error) if is_nowhere(&error) => return Ok(Leads::Well),
        target => target.map_err(Fault::at("follow the link", link))?,
    };
    if parts.iter().any(|part| target.starts_with(part)) {
        return Ok(Leads::Well);
    }
    let sort = target.metadata().map_err(Fault::at("look at", &target))?;
    let sort = sort.file_type();
    let link = link.to_owned();
    let stray = Stray { link, target };
    Ok(if sort.is_dir() {
        Leads::ToDirectory(stray)
    } else if sort.is_file() || sort.is_block_device() {
        Leads::ToFile(stray)
    } else {
        Leads::ToSpecial(stray)
    })
}

/// Nothing of that name, a file where a directory should be, links in a circle.
fn is_nowhere(error: &io::Error) -> bool {
    let nowhere = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP];
    error
        .raw_os_error()
        .is_some_and(|errno| nowhere.contains(&errno))
}

/// Links of the directories of `snapshot` that lead to files outside of them, as things are now: what
/// they lead to is neither in the snapshot nor restored.
///
/// # Errors
/// The first link that cannot be followed.
pub fn linked_files(snapshot: &Snapshot) -> Result<Vec<Stray>, Fault> {
    let paths = snapshot.parts();
    let mut strays = Vec::new();
    for part in &snapshot.manifest().parts {
        let links = part.entries.iter();
        for entry in links.filter(|entry| matches!(entry.kind, Kind::Symlink(_))) {
            if let Leads::ToFile(stray) = follow(&part.path.join(&entry.path), &paths)? {
                strays.push(stray);
            }
        }
    }
    Ok(strays)
}
