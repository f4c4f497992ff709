//! Where the symbolic links of the parts lead: what lies outside is not in the snapshot.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::name::shown;

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
    /// To a directory that is no part: its data would be missing.
    ToDirectory(Stray),
    /// To a file that is no part's: a certificate, perhaps.
    ToFile(Stray),
}

/// Follows `link`, an absolute path.
pub(crate) fn follow(link: &Path, parts: &[PathBuf]) -> Leads {
    // A link that leads nowhere does so after a restore, too.
    let Ok(target) = link.canonicalize() else {
        return Leads::Well;
    };
    if parts.iter().any(|part| target.starts_with(part)) {
        return Leads::Well;
    }
    let is_folder = target.is_dir();
    let link = link.to_owned();
    let stray = Stray { link, target };
    if is_folder {
        Leads::ToDirectory(stray)
    } else {
        Leads::ToFile(stray)
    }
}
