//! Extracts the lines of a log that explain a failure, joined by ` | ` for error messages.

use std::fs;
use std::path::Path;

/// Maximum number of lines in a message.
const SHOWN: usize = 4;
/// The mark of errors in MariaDB's log.
const ERROR_MARK: &str = "[ERROR]";

/// The last line that is not empty; `nothing` for an empty log.
#[must_use]
pub fn last_line(path: &Path) -> String {
    last(path, 1)
}

/// The last four lines that are not empty.
#[must_use]
pub fn last_lines(path: &Path) -> String {
    last(path, SHOWN)
}

/// The lines that name the cause of a failure. If the log has errors marked as in MariaDB, these
/// are the first error, the line before it and the lines after it; otherwise the last lines. In
/// MariaDB's log, consequences and advice follow the cause.
#[must_use]
pub fn cause(path: &Path) -> String {
    let text = read(path);
    let lines = lines(&text);
    match lines.iter().position(|line| line.contains(ERROR_MARK)) {
        None => joined(&lines, SHOWN),
        Some(first) => {
            let cause = &lines[first.saturating_sub(1)..];
            joined(&cause[..cause.len().min(SHOWN)], SHOWN)
        }
    }
}

fn last(path: &Path, count: usize) -> String {
    joined(&lines(&read(path)), count)
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Joins the last `count` lines.
fn joined(lines: &[&str], count: usize) -> String {
    match &lines[lines.len().saturating_sub(count)..] {
        [] => "nothing".to_owned(),
        lines => lines.join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consequences_and_advice_do_not_hide_the_cause() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(cause(&path), "nothing");
        fs::write(&path, "a\nb\nc\nd\ne\n").unwrap();
        assert_eq!(cause(&path), "b | c | d | e");
        let advice = "a\nb\n0 [ERROR] full\n0 [ERROR] so\n0 [ERROR] Aborting\nread on\nat\n";
        fs::write(&path, advice).unwrap();
        let wanted = "b | 0 [ERROR] full | 0 [ERROR] so | 0 [ERROR] Aborting";
        assert_eq!(cause(&path), wanted);
        fs::write(&path, "0 [ERROR] Aborting\n").unwrap();
        assert_eq!(cause(&path), "0 [ERROR] Aborting");
    }

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
