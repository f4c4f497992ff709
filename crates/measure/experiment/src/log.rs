//! What a server said last.

use std::fs;
use std::path::Path;

/// Lines that explain a failure; more would hide it.
const SHOWN: usize = 4;

/// The last line that is not empty.
#[must_use]
pub fn last_line(path: &Path) -> String {
    last(path, 1)
}

/// The last lines that are not empty, in one line.
#[must_use]
pub fn last_lines(path: &Path) -> String {
    last(path, SHOWN)
}

fn last(path: &Path, count: usize) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match &lines[lines.len().saturating_sub(count)..] {
        [] => "nothing".to_owned(),
        lines => lines.join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(last_line(&path), "nothing");
        fs::write(&path, "a\n\n b \nc\nd\ne\n\n").unwrap();
        assert_eq!(last_line(&path), "e");
        assert_eq!(last_lines(&path), "b | c | d | e");
    }
}
