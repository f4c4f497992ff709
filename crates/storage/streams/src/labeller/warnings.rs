//! Logs each warning about a path once, until it changes or is over.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The last warning about each path, and the number of the last scan in which it was true.
#[derive(Debug, Default)]
pub(super) struct Warnings(HashMap<PathBuf, (String, u64)>);

impl Warnings {
    /// Whether this is not the last warning about `path`, so that it must be logged. `scan` is the
    /// number of the present scan.
    pub(super) fn is_new(&mut self, path: &Path, text: &str, scan: u64) -> bool {
        let before = self.0.insert(path.to_owned(), (text.to_owned(), scan));
        before.is_none_or(|(before, _)| before != text)
    }

    /// Forgets the warning about a path that has no problem now.
    pub(super) fn end(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Forgets the warnings that were not true in `scan`, which has looked at everything.
    pub(super) fn end_before(&mut self, scan: u64) {
        self.0.retain(|_, (_, last)| *last == scan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_new_when_it_changes_or_returns() {
        let mut warnings = Warnings::default();
        let (a, b) = (Path::new("a"), Path::new("b"));
        assert!(warnings.is_new(a, "gone", 1));
        assert!(!warnings.is_new(a, "gone", 1));
        assert!(warnings.is_new(b, "gone", 1));
        assert!(warnings.is_new(a, "refused", 1));
        warnings.end(a);
        assert!(warnings.is_new(a, "refused", 1));
        // In the second scan, `a` still has its problem and `b` has none.
        assert!(!warnings.is_new(a, "refused", 2));
        warnings.end_before(2);
        assert!(!warnings.is_new(a, "refused", 3));
        assert!(warnings.is_new(b, "gone", 3));
    }
}
