//! The text format of a props file: keys and values with their line numbers.
//!
//! The format is that of `java.util.Properties` (see `load(Reader)`): comments, three kinds of
//! separators, continued lines and escapes. If a key is repeated, its last value counts. Two
//! exceptions exist, because files in use need them. A line that begins with `//` is a comment;
//! Java makes a harmless key of it. Blanks around a value are removed; Java keeps the blanks after
//! a value, and BenchmarkSQL then fails to parse numbers.

use std::collections::BTreeMap;

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) value: String,
    /// Number of the first line of the entry, from 1.
    pub(crate) line: usize,
}

/// Decodes a file: UTF-8, with or without a byte order mark, or else Latin-1 as in Java. In Latin-1
/// every byte is valid, so comments in other encodings do no harm.
pub(super) fn of_bytes(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        let bytes = error.into_bytes();
        bytes.into_iter().map(char::from).collect()
    });
    match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    }
}

/// Parses a text into entries by key.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Entry>, BadEscape> {
    let mut entries = BTreeMap::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let mut logical = first.trim_start().to_owned();
        if is_comment(&logical) {
            continue;
        }
        while continues(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        if logical.trim().is_empty() {
            continue;
        }
        let line = at + 1;
        let (key, value) = split(&logical);
        let bad = |escape: String| BadEscape { line, escape };
        let key = unescape(key).map_err(bad)?;
        let value = unescape(value).map_err(bad)?.trim().to_owned();
        entries.insert(key, Entry { value, line });
    }
    Ok(entries)
}

/// A `\u` without four hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadEscape {
    pub(crate) line: usize,
    pub(crate) escape: String,
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', '!']) || line.starts_with("//")
}

/// Whether the line ends with a backslash that is not itself escaped.
fn continues(line: &str) -> bool {
    let slashes = line.bytes().rev().take_while(|b| *b == b'\\').count();
    slashes % 2 == 1
}

/// Splits a line into key and value; the key ends at the first `=`, `:` or blank that is not
/// escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let ends = |c: char| {
        let was = std::mem::take(&mut escaped);
        escaped = c == '\\' && !was;
        !was && (c == '=' || c == ':' || is_blank(c))
    };
    let end = line.find(ends).unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                let known = code.filter(|_| digits.len() == 4).and_then(char::from_u32);
                out.push(known.ok_or_else(|| format!("\\u{digits}"))?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let entries = parse(text).unwrap();
        let pair = |(key, entry): (String, Entry)| (key, entry.value);
        entries.into_iter().map(pair).collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut all = pairs(text);
        assert_eq!(all.len(), 1, "{text:?}");
        all.remove(0)
    }

    fn own(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn three_separators_and_blanks_around_them() {
        for text in [
            "db=mysql",
            "db:mysql",
            "db mysql",
            "  db  =  mysql  ",
            "db\t: mysql\r",
        ] {
            assert_eq!(one(text), own("db", "mysql"), "{text:?}");
        }
        assert_eq!(one("k==v"), own("k", "=v"));
        assert_eq!(
            one("conn=jdbc:mysql://h:3306/t?a=b&c=d").1,
            "jdbc:mysql://h:3306/t?a=b&c=d"
        );
        assert_eq!(one("alone"), own("alone", ""));
    }

    #[test]
    fn comments_of_java_and_lines_that_begin_with_slashes() {
        assert_eq!(pairs("# a=1\n! b=2\n  # c=3\n// d=4\n//To run\n\n"), []);
        assert_eq!(one("a=1 # not a comment"), own("a", "1 # not a comment"));
    }

    #[test]
    fn lines_continue_after_a_backslash_and_comments_do_not() {
        assert_eq!(one("a=1,\\\n   2,\\\n   3"), own("a", "1,2,3"));
        assert_eq!(one("# x \\\na=1"), own("a", "1"));
        assert_eq!(one("a=c:\\\\\n").1, "c:\\");
        assert_eq!(one("a=1\\").1, "1");
    }

    #[test]
    fn files_of_other_editors_are_read() {
        let read = |bytes: &[u8]| pairs(&of_bytes(bytes.to_vec()));
        let wanted = [own("db", "mysql")];
        assert_eq!(read(b"\xef\xbb\xbfdb=mysql\r\n"), wanted);
        assert_eq!(read(b"# GBK: \xd6\xd0\xb9\xfa\ndb=mysql\n"), wanted);
        assert_eq!(read("// 中国\ndb=mysql\n".as_bytes()), wanted);
        assert_eq!(read(b"user=J\xf6rg"), [own("user", "Jörg")]);
    }

    #[test]
    fn escapes_are_decoded_and_invalid_ones_reported_with_their_line() {
        assert_eq!(one(r"a\ b\=c=\u0041\tB\q"), own("a b=c", "A\tBq"));
        let bad = parse("a=1\nb=\\u00g1").unwrap_err();
        let wanted = BadEscape {
            line: 2,
            escape: "\\u00g1".to_owned(),
        };
        assert_eq!(bad, wanted);
        assert_eq!(parse("b=\\u41").unwrap_err().line, 1);
    }

    #[test]
    fn the_last_of_equal_keys_wins_and_lines_are_counted_from_one() {
        let entries = parse("#\na=1\nb=2,\\\n3\na=9\n").unwrap();
        assert_eq!(
            entries["a"],
            Entry {
                value: "9".to_owned(),
                line: 5
            }
        );
        assert_eq!(entries["b"].line, 3);
    }
}
