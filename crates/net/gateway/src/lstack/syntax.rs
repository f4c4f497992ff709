//! The syntax of `lstack.conf`, that of libconfig: settings, strings, lists and groups.
//!
//! Spec: libconfig 1.7, "Configuration Files". Takes the text; returns the settings of the root in
//! their order, or the first mistake, as libconfig does. Deliberately absent: `@include`, which is
//! refused, since an ignored file would lose settings.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use crate::file::Problem;

/// Lists and groups in each other, at most.
const DEPTH: usize = 16;

/// A setting of the root.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Flag(bool),
    /// `[...]` or `(...)`.
    List(Vec<Value>),
    /// `{...}`. No key of `lstack.conf` has one.
    Group,
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<Vec<Setting>, Problem> {
    let mut parser = Parser {
        rest: text.chars().peekable(),
        line: 1,
    };
    parser.settings(None, 0)
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Parser<'_> {
    fn problem(&self, text: &str) -> Problem {
        Problem {
            line: self.line,
            text: text.to_owned(),
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// Takes a character if it is the next one.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.rest.peek() == Some(&wanted);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes characters while they are of a kind.
    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.rest.next_if(|next| is_wanted(*next)) {
            self.line += usize::from(next == '\n');
            taken.push(next);
        }
        taken
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            self.take_while(|next| next.is_ascii_whitespace() || next == '\u{b}');
            if self.take('#') {
                self.take_while(|next| next != '\n');
            } else if self.take('/') {
                self.skip_slash()?;
            } else {
                return Ok(());
            }
        }
    }

    /// Skips a comment of which a slash was taken.
    fn skip_slash(&mut self) -> Result<(), Problem> {
        if self.take('/') {
            self.take_while(|next| next != '\n');
            return Ok(());
        }
        let opened = self.problem("a comment begins with /* and has no */");
        if !self.take('*') {
            return Err(self.problem("\"/\" does not begin a value; write comments as # or //"));
        }
        loop {
            match self.next() {
                None => return Err(opened),
                Some('*') if self.take('/') => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Parses settings up to the end of the file, or of a group.
    fn settings(&mut self, end: Option<char>, depth: usize) -> Result<Vec<Setting>, Problem> {
        let mut settings = Vec::new();
        let mut keys = BTreeSet::new();
        loop {
            self.skip()?;
            match self.rest.peek() {
                None if end.is_none() => return Ok(settings),
                None => return Err(self.problem("a group has no \"}\"")),
                Some(next) if Some(*next) == end => {
                    self.next();
                    return Ok(settings);
                }
                Some(_) => {}
            }
            let setting = self.setting(depth)?;
            if !keys.insert(setting.key.clone()) {
                return Err(Problem {
                    line: setting.line,
                    text: format!("{} is set twice; remove one of them", setting.key),
                });
            }
            settings.push(setting);
        }
    }

    fn setting(&mut self, depth: usize) -> Result<Setting, Problem> {
        let line = self.line;
        if self.take('@') {
            return Err(self.problem("@include is not supported; write all settings in this file"));
        }
        let is_first = |next: char| next.is_ascii_alphabetic() || next == '*';
        if !self.rest.peek().is_some_and(|next| is_first(*next)) {
            return Err(self.problem("write a setting such as num_cpus=\"2\""));
        }
        let is_name = |next: char| next.is_ascii_alphanumeric() || "-_*".contains(next);
        let key = self.take_while(is_name);
        self.skip()?;
        if !self.take('=') && !self.take(':') {
            return Err(self.problem(&format!("write \"=\" after {key}")));
        }
        self.skip()?;
        let value = self.value(&key, depth)?;
        self.skip()?;
        if !self.take(';') {
            self.take(',');
        }
        Ok(Setting { line, key, value })
    }

    fn value(&mut self, key: &str, depth: usize) -> Result<Value, Problem> {
        if depth > DEPTH {
            return Err(self.problem(&format!("{key} has more than {DEPTH} nested lists")));
        }
        match self.rest.peek().copied() {
            Some('"') => self.strings().map(Value::Text),
            Some('[') => self.list(key, ']', depth + 1),
            Some('(') => self.list(key, ')', depth + 1),
            Some('{') => {
                self.next();
                self.settings(Some('}'), depth + 1)?;
                Ok(Value::Group)
            }
            Some(_) | None => self.word(key),
        }
    }

    /// Parses strings, of which adjacent ones are one string.
    fn strings(&mut self) -> Result<String, Problem> {
        let mut text = String::new();
        while self.take('"') {
            let opened = self.problem("a string has no closing quotation mark");
            loop {
                match self.next() {
                    None => return Err(opened),
                    Some('"') => break,
                    Some('\\') => text.push(self.escaped().ok_or_else(|| opened.clone())?),
                    Some(plain) => text.push(plain),
                }
            }
            self.skip()?;
        }
        Ok(text)
    }

    /// The character that follows a backslash.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'f' => '\u{c}',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'v' => '\u{b}',
            'x' => {
                let mut digit = || {
                    let digit = self.rest.next_if(char::is_ascii_hexdigit)?;
                    digit.to_digit(16)
                };
                let (high, low) = (digit().unwrap_or(0), digit().unwrap_or(0));
                char::from_u32(high * 16 + low)?
            }
            other => other,
        })
    }

    fn list(&mut self, key: &str, end: char, depth: usize) -> Result<Value, Problem> {
        let opened = self.problem(&format!("the list of {key} has no \"{end}\""));
        self.next();
        let mut values = Vec::new();
        loop {
            self.skip()?;
            if self.take(end) {
                return Ok(Value::List(values));
            }
            if self.rest.peek().is_none() {
                return Err(opened);
            }
            values.push(self.value(key, depth)?);
            self.skip()?;
            if !self.take(',') && self.rest.peek() != Some(&end) {
                return Err(self.problem(&format!("write \",\" or \"{end}\" in the list of {key}")));
            }
        }
    }

    /// Parses a number, true or false.
    fn word(&mut self, key: &str) -> Result<Value, Problem> {
        let word = self.take_while(|next| next.is_ascii_alphanumeric() || "+-._".contains(next));
        if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
            return Ok(Value::Flag(word.len() == 4));
        }
        let whole = whole(&word).map(Value::Whole);
        let is_number = word.bytes().any(|byte| byte.is_ascii_digit());
        let fraction = word.parse().ok().filter(|_| is_number).map(Value::Fraction);
        whole.or(fraction).ok_or_else(|| match word.as_str() {
            "" => self.problem(&format!("{key} has no value")),
            word => self.problem(&format!("{key}={word}: write strings in quotation marks")),
        })
    }
}

/// Parses a whole number: decimal or hexadecimal, with `L` or `LL` for 64 bits.
fn whole(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches('L');
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(usize, String, Value)> {
        let settings = parse(text).unwrap();
        let parts = |one: Setting| (one.line, one.key, one.value);
        settings.into_iter().map(parts).collect()
    }

    #[test]
    fn settings_have_many_forms() {
        let text = "# head\nuse_ltran=0\nnum_cpus = \"2\" \"4\"; // two strings\n\
                    a : 0x1F; b=-3L,\n/* over\nlines */ c = [ \"x\",\n \"y\" ]\nd=(1, [2.5], true)\n\
                    e = { f = 1; };";
        let text_of = |text: &str| Value::Text(text.to_owned());
        let expected = [
            (2, "use_ltran", Value::Whole(0)),
            (3, "num_cpus", text_of("24")),
            (4, "a", Value::Whole(31)),
            (4, "b", Value::Whole(-3)),
            (6, "c", Value::List(vec![text_of("x"), text_of("y")])),
            (
                8,
                "d",
                Value::List(vec![
                    Value::Whole(1),
                    Value::List(vec![Value::Fraction(2.5)]),
                    Value::Flag(true),
                ]),
            ),
            (9, "e", Value::Group),
        ];
        let expected = expected.map(|(line, key, value)| (line, key.to_owned(), value));
        assert_eq!(values(text), expected);
    }

    #[test]
    fn escapes() {
        let text = r#"a = "\"\\\x41\t\q""#;
        let expected = Value::Text("\"\\A\tq".to_owned());
        assert_eq!(values(text), [(1, "a".to_owned(), expected)]);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, expected) in [
            ("a=1\nb", 2, "write \"=\" after b"),
            ("a=\"x\n\n", 1, "no closing quotation mark"),
            (
                "a=[\"x\"\n\"y\" 5]",
                2,
                "write \",\" or \"]\" in the list of a",
            ),
            ("\na=[1,", 2, "the list of a has no \"]\""),
            ("a=1\na=2", 2, "a is set twice"),
            ("a=b", 1, "a=b: write strings in quotation marks"),
            ("a=", 1, "a has no value"),
            ("a=1\n/* open", 2, "has no */"),
            ("a=1 / 2", 1, "\"/\" does not begin a value"),
            ("=1", 1, "write a setting such as"),
            ("a={b=1", 1, "a group has no \"}\""),
            ("@include \"x\"", 1, "@include is not supported"),
            ("a=[[[[[[[[[[[[[[[[[[1", 1, "more than 16 nested lists"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.line, line, "{text:?}: {problem}");
            assert!(problem.text.contains(expected), "{text:?}: {problem}");
        }
    }
}
