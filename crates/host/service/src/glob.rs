//! Patterns of paths, as in AppArmor's rules and in `EnvironmentFile=`.
//!
//! Spec: `man 7 glob`; `man 5 apparmor.d` adds `**` and `{a,b}`. Deliberately absent: classes such
//! as `[[:digit:]]`.

use std::path::Path;

use crate::cluster::names_in;
use crate::root::Root;

/// Whether `path` matches a pattern of AppArmor: `*`, `?` and `[..]` stand for any characters but a
/// slash, `**` also for slashes, and `{a,b}` for one of its parts.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let mut chars = pattern.chars();
    let Some(first) = chars.next() else {
        return path.is_empty();
    };
    let rest = chars.as_str();
    let next = path.chars().next();
    let behind = &path[next.map_or(0, char::len_utf8)..];
    match first {
        '*' => {
            let (rest, limit) = match rest.strip_prefix('*') {
                Some(rest) => (rest, path.len()),
                None => (rest, path.find('/').unwrap_or(path.len())),
            };
            let mut tails = (0..=limit).filter_map(|at| path.get(at..));
            tails.any(|tail| matches(rest, tail))
        }
        '?' => next.is_some_and(|c| c != '/') && matches(rest, behind),
        '[' => next
            .zip(set(rest))
            .is_some_and(|(c, (set, rest))| c != '/' && is_member(set, c) && matches(rest, behind)),
        '{' => parts(rest).is_some_and(|(parts, rest)| {
            let mut parts = parts.into_iter();
            parts.any(|part| matches(&format!("{part}{rest}"), path))
        }),
        '\\' => {
            let mut rest = rest.chars();
            next.is_some() && rest.next() == next && matches(rest.as_str(), behind)
        }
        _ => next == Some(first) && matches(rest, behind),
    }
}

/// Splits behind an opening bracket: the set, and the rest of the pattern. A bracket in the first
/// place is a member.
fn set(text: &str) -> Option<(&str, &str)> {
    let first = text.trim_start_matches(['!', '^']).chars().next()?;
    let from = text.len() - text.trim_start_matches(['!', '^']).len() + first.len_utf8();
    let end = from + text.get(from..)?.find(']')?;
    Some((&text[..end], &text[end + 1..]))
}

fn is_member(set: &str, c: char) -> bool {
    let members = set.trim_start_matches(['!', '^']);
    let letters: Vec<char> = members.chars().collect();
    let in_range = |three: &[char]| three[1] == '-' && (three[0]..=three[2]).contains(&c);
    (letters.contains(&c) || letters.windows(3).any(in_range)) == (members.len() == set.len())
}

/// Splits behind an opening brace: the parts between commas, and the rest of the pattern.
fn parts(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
                if c == '}' {
                    return Some((parts, &text[from..]));
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The files for which a path of glob(7) stands, sorted, as paths from the root. Braces and a
/// second asterisk have no meaning, and a wildcard does not match a leading dot.
pub(crate) fn files(root: &Root, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let wildcards = part.replace('{', "\\{").replace("**", "*");
        let is_match = |name: &String| {
            matches(&wildcards, name) && (part.starts_with('.') || !name.starts_with('.'))
        };
        let below = |folder: String| -> Vec<String> {
            let names = if part.contains(['*', '?', '[', '\\']) {
                let names = names_in(&root.file(Path::new("/").join(&folder)));
                names.into_iter().filter(is_match).collect()
            } else {
                vec![part.to_owned()]
            };
            names
                .iter()
                .map(|name| format!("{folder}/{name}"))
                .collect()
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found.retain(|path| root.file(path).exists());
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_apparmor() {
        for (pattern, path, expected) in [
            ("/usr/{,s}bin/d*", "/usr/sbin/db", true),
            ("/usr/{,s}bin/d*", "/usr/bin/d", true),
            ("/usr/{,s}bin/d*", "/usr/xbin/db", false),
            ("/{usr/{,local/},}lib/**", "/usr/local/lib/saiga/a.so", true),
            ("/usr/*", "/usr/lib/a", false),
            ("/usr/*/a", "/usr/lib/a", true),
            ("/usr/**.so*", "/usr/lib/x/a.so.1", true),
            ("/d?", "/d/", false),
            ("/[a-cx]", "/b", true),
            ("/[!a-c]", "/b", false),
            ("/[^a-c]", "/d", true),
            ("/[]a]", "/]", true),
            ("/[a", "/a", false),
            ("/{a", "/a", false),
            ("/a\\*", "/a*", true),
            ("/a\\*", "/ab", false),
            ("/é?", "/éü", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
