//! POSIX extended regular expressions, as glibc's regcomp reads them with `REG_EXTENDED | REG_NEWLINE` in the C locale,
//! for the regex crate.
//!
//! Bytes, not characters. What differs: bracket expressions have a grammar of their own, `.` and `[^...]` do not match a
//! newline, an unmatched `)` is a character, `\<`, `\>`, `` \` `` and `\'` are anchors. Back-references cannot be had
//! from a regex that never backtracks, and are refused by name.

mod bracket;

use std::fmt::Write as _;

use regex::bytes::{Regex, RegexBuilder};

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EreError {
    /// `\1` to `\9`.
    #[error(
        "`\\{0}` is a back-reference, which is not supported; write the two cases as two rules"
    )]
    BackReference(char),
    /// An open parenthesis.
    #[error("a `(` is not closed")]
    Parenthesis,
    /// An open bracket.
    #[error("a `[` is not closed")]
    Bracket,
    /// Nothing before a repetition.
    #[error("there is nothing to repeat before `{0}`")]
    Repetition(char),
    /// `{` without numbers, or in the wrong order, or above 32767.
    #[error("what follows a `{{` is no repetition; write `\\{{` for the character")]
    Interval,
    /// A range that runs backwards or ends in a class.
    #[error("a range in brackets has no end or runs backwards")]
    Range,
    /// `[:word:]` with another word than POSIX has.
    #[error("`[:{0}:]` is no character class")]
    Class(String),
    /// `[.xy.]` or `[=xy=]`.
    #[error("`[{0}` names no single character in the C locale")]
    Collation(String),
    /// A lone backslash.
    #[error("a `\\` stands at the end")]
    Backslash,
    /// Larger than a regex may be.
    #[error("it is too large: {0}")]
    Large(String),
}

/// Compiles `expression`.
pub(super) fn compile(expression: &[u8]) -> Result<Regex, EreError> {
    let mut reader = Reader {
        rest: expression,
        out: String::new(),
        depth: 0,
    };
    reader.alternatives()?;
    RegexBuilder::new(&reader.out)
        .unicode(false)
        .multi_line(true)
        .build()
        .map_err(|error| EreError::Large(error.to_string()))
}

struct Reader<'a> {
    rest: &'a [u8],
    out: String,
    depth: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Everything up to the end, or to the parenthesis that closes this group.
    fn alternatives(&mut self) -> Result<(), EreError> {
        // Where the atom that a repetition would repeat begins in `out`.
        let mut atom: Option<usize> = None;
        while let Some(byte) = self.next() {
            let start = self.out.len();
            atom = match byte {
                b')' if self.depth > 0 => return Ok(()),
                b'|' | b'^' | b'$' => {
                    self.out.push(char::from(byte));
                    None
                }
                b'*' | b'+' | b'?' | b'{' => {
                    let atom = atom.ok_or(EreError::Repetition(char::from(byte)))?;
                    self.repeat(byte, atom)?;
                    Some(atom)
                }
                b'(' => {
                    self.group()?;
                    Some(start)
                }
                b'.' => {
                    self.out.push_str("[^\\n]");
                    Some(start)
                }
                b'[' => {
                    let class = bracket::read(&mut self.rest)?;
                    self.out.push_str(&class);
                    Some(start)
                }
                b'\\' => self.escape()?.then_some(start),
                byte => {
                    self.literal(byte);
                    Some(start)
                }
            };
        }
        if self.depth > 0 {
            return Err(EreError::Parenthesis);
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), EreError> {
        self.out.push_str("(?:");
        self.depth += 1;
        self.alternatives()?;
        self.depth -= 1;
        self.out.push(')');
        Ok(())
    }

    fn literal(&mut self, byte: u8) {
        let _ = write!(self.out, "\\x{byte:02x}");
    }

    /// Repeats what begins at `atom`, as a group: `a+?` is not lazy, as it would be to the regex crate.
    fn repeat(&mut self, operator: u8, atom: usize) -> Result<(), EreError> {
        let operator = match operator {
            b'{' => self.interval()?,
            simple => char::from(simple).to_string(),
        };
        self.out.insert_str(atom, "(?:");
        self.out.push(')');
        self.out.push_str(&operator);
        Ok(())
    }

    /// What follows a `{`: `n`, `n,`, `n,m` or, as glibc has it, `,m`.
    fn interval(&mut self) -> Result<String, EreError> {
        let end = self.rest.iter().position(|byte| *byte == b'}');
        let end = end.ok_or(EreError::Interval)?;
        let (inner, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        let inner = std::str::from_utf8(inner).map_err(|_| EreError::Interval)?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let value = text.parse::<u32>().ok().filter(|value| *value <= 32767);
            value.filter(|_| is_plain).ok_or(EreError::Interval)
        };
        match inner.split_once(',') {
            None => Ok(format!("{{{}}}", number(inner)?)),
            Some(("", "")) => Ok("{0,}".to_owned()),
            Some((least, "")) => Ok(format!("{{{},}}", number(least)?)),
            Some(("", most)) => Ok(format!("{{0,{}}}", number(most)?)),
            Some((least, most)) => {
                let (least, most) = (number(least)?, number(most)?);
                if least > most {
                    return Err(EreError::Interval);
                }
                Ok(format!("{{{least},{most}}}"))
            }
        }
    }

    /// What follows a backslash; whether it can be repeated.
    fn escape(&mut self) -> Result<bool, EreError> {
        let byte = self.next().ok_or(EreError::Backslash)?;
        let (text, is_atom) = match byte {
            b'1'..=b'9' => return Err(EreError::BackReference(char::from(byte))),
            b'w' => ("[0-9A-Za-z_]", true),
            b'W' => ("[^0-9A-Za-z_]", true),
            b's' => ("[\\x09-\\x0d\\x20]", true),
            b'S' => ("[^\\x09-\\x0d\\x20]", true),
            b'b' => ("\\b", false),
            b'B' => ("\\B", false),
            b'<' => ("\\b{start}", false),
            b'>' => ("\\b{end}", false),
            b'`' => ("\\A", false),
            b'\'' => ("\\z", false),
            byte => {
                self.literal(byte);
                return Ok(true);
            }
        };
        self.out.push_str(text);
        Ok(is_atom)
    }
}

#[cfg(test)]
mod tests;
