//! Creates globs from places of files, and matches them as the labeller does.
//!
//! A place is the path of a file in its recorded directory ([`saiga_ftl::trace::Trace::place`]).

use std::path::Path;

use saiga_streams::rules::{Pattern, file};

/// Returns the glob for exactly this place; `None` if no rule can match it.
pub(super) fn exact(place: &str) -> Option<String> {
    checked(place, false)
}

/// Returns the glob for places that differ only in numbers; `None` if no rule can match them.
pub(super) fn of_kind(place: &str) -> Option<String> {
    checked(place, true)
}

/// Compiles a glob as the labeller does.
pub(super) fn compiled(glob: &str) -> Option<Pattern> {
    file::glob(glob).ok()
}

/// Whether a rule with this glob matches a place.
pub(super) fn matches(pattern: &Pattern, place: &str) -> bool {
    match pattern {
        Pattern::Glob(glob) => glob.is_match(Path::new(place)),
        Pattern::Search { .. } => false,
    }
}

/// Escapes the special characters of globs.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ',' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            // Bytes that are not UTF-8 have become U+FFFD in the trace.
            char::REPLACEMENT_CHARACTER => out.push('*'),
            letter => out.push(letter),
        }
    }
    out
}

/// Returns the glob for a place, or for all places of its kind, if the glob matches the place.
fn checked(place: &str, is_kind: bool) -> Option<String> {
    // If the trace has no directories, places may be absolute. Rules match relative paths, so the
    // glob matches any path with this end.
    let (prefix, place) = match place.strip_prefix('/') {
        Some(rest) => ("**/", rest),
        None => ("", place),
    };
    let body = if is_kind {
        numbers_replaced(place)
    } else {
        escaped(place)
    };
    let glob = format!("{prefix}{body}");
    let is_found = compiled(&glob).is_some_and(|pattern| matches(&pattern, place));
    is_found.then_some(glob)
}

/// Replaces each run of eight or more upper-case hexadecimal digits by `[0-9A-F]*`, and each other
/// run of digits by `[0-9]*`. Escapes all other characters.
fn numbers_replaced(place: &str) -> String {
    let mut out = String::new();
    let mut rest = place;
    while let Some(letter) = rest.chars().next() {
        let run = |is_in: fn(char) -> bool| rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        let decimal = run(|c| c.is_ascii_digit());
        let hexadecimal = run(|c| c.is_ascii_digit() || ('A'..='F').contains(&c));
        let (length, glob) = match (hexadecimal, decimal) {
            (8.., _) => (hexadecimal, "[0-9A-F]*".to_owned()),
            (_, 1..) => (decimal, "[0-9]*".to_owned()),
            _ => (letter.len_utf8(), escaped(&rest[..letter.len_utf8()])),
        };
        out.push_str(&glob);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_become_patterns() {
        for (place, expected) in [
            ("#ib_16384_0.dblwr", "#ib_[0-9]*_[0-9]*.dblwr"),
            ("pg_wal/00000001000000000000002A", "pg_wal/[0-9A-F]*"),
            ("/db/a[1].x", "**/db/a\\[[0-9]*\\].x"),
            ("FACE", "FACE"),
        ] {
            assert_eq!(of_kind(place).as_deref(), Some(expected));
        }
        for place in ["a/", "../a", "./a", "a/../b", ""] {
            assert_eq!(exact(place), None, "{place}");
        }
    }

    proptest! {
        /// The names contain all special characters of globs.
        #[test]
        fn a_place_matches_its_globs_and_no_other_place_its_exact_one(
            place in "[a-c0-3*?{},!\\[\\]\\\\ .#-]{1,6}(/[a-c0-3*?{},!\\[\\]\\\\#]{1,4}){0,2}",
            other in "[a-c0-3*?]{1,3}",
        ) {
            prop_assume!(place != other);
            if let Some(glob) = exact(&place) {
                let pattern = compiled(&glob).unwrap();
                prop_assert!(matches(&pattern, &place), "{}", glob);
                prop_assert!(!matches(&pattern, &other), "{} {}", glob, other);
            } else {
                prop_assert!(place.split('/').any(|part| part == "." || part == ".."), "{}", place);
            }
            if let Some(glob) = of_kind(&place) {
                prop_assert!(matches(&compiled(&glob).unwrap(), &place), "{}", glob);
            }
        }
    }
}
