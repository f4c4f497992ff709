//! The library as a service finds it, and the folder or file that denies the service access.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::root::Root;

const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

/// `libsaiga.so`, which may be installed inside or outside of the root folder.
#[derive(Debug)]
pub struct Library {
    /// Its path for this process.
    pub(crate) file: PathBuf,
    /// Its path for the services of the system below the root.
    pub(crate) seen: PathBuf,
}

impl Library {
    pub fn new(file: PathBuf, root: &Root) -> Self {
        let seen = match file.strip_prefix(root.as_path()) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => file.clone(),
        };
        Self { file, seen }
    }

    /// The outermost folder that `account` may not search, or the file if `account` may not read
    /// it; as a path for the services.
    pub(crate) fn denied_at(&self, account: &Account) -> Option<&Path> {
        // The two paths end in the same names, down to the root of the services.
        let steps: Vec<_> = self.file.ancestors().zip(self.seen.ancestors()).collect();
        let is_denied = |(file, _): &(&Path, &Path)| {
            let bit = if *file == self.file { READ } else { SEARCH };
            !file
                .metadata()
                .is_ok_and(|metadata| account.may(&metadata, bit))
        };
        let denied = steps.into_iter().rev().find(is_denied)?;
        Some(denied.1)
    }
}
