//! POSIX extended regular expressions, as astream has them: those of the C library, with `REG_NEWLINE`, in the C locale.
//!
//! Two kinds that glibc accepts are refused here, for neither its memory nor its time has a bound that a labeller could
//! live with. It looks for a back-reference by trying all ways to divide the text. And it writes repetitions out, `a+` as
//! `aa*`, before it compiles them: `a` with 24 `+` behind it takes 2 GB. What is left is the administrator's: glibc keeps
//! each state that a path has led it to, and there are expressions that have a new one for each path.

use std::ffi::CString;
use std::sync::Arc;

use crate::sys::regex::Regex;

/// The most characters that an expression may have when its repetitions are written out.
const LIMIT: usize = 1024;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Ere(Arc<Regex>);

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EreError {
    /// `\1` to `\9`.
    #[error(
        "`\\{0}` is a back-reference, which is not supported; write the two cases as two rules"
    )]
    BackReference(char),
    /// Repetitions of repetitions, or one of thousands.
    #[error("with its repetitions written out it has more than {LIMIT} characters; repeat less")]
    Large,
    /// A byte that no path has.
    #[error("there is a NUL byte in it, which no path has")]
    Nul,
    /// The C library does not accept it.
    #[error("{0}")]
    Refused(String),
}

impl Ere {
    /// Compiles `expression`.
    pub(super) fn new(expression: &[u8]) -> Result<Self, EreError> {
        let text = CString::new(expression).map_err(|_| EreError::Nul)?;
        measure(expression)?;
        let regex = Regex::new(&text).map_err(EreError::Refused)?;
        Ok(Self(Arc::new(regex)))
    }

    /// Whether it is found anywhere in `path`.
    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        CString::new(path).is_ok_and(|path| self.0.is_match(&path))
    }
}

/// Refuses what the C library accepts and this does not; what neither accepts may pass.
fn measure(expression: &[u8]) -> Result<(), EreError> {
    // Characters of each group that is open around, of this one, and of what a repetition would repeat.
    let (mut around, mut group, mut atom) = (Vec::new(), 0_usize, 0_usize);
    let mut rest = expression;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        let mut copies = 1;
        match byte {
            b'(' => {
                around.push(group);
                (group, atom) = (0, 0);
            }
            b')' => {
                atom = group + 1;
                group = around.pop().unwrap_or(0) + atom;
            }
            b'+' => copies = 2,
            b'{' => {
                let end = tail.iter().position(|byte| *byte == b'}').unwrap_or(0);
                copies = most_copies(&tail[..end]);
                rest = &tail[end..];
            }
            b'*' | b'?' => {}
            byte => {
                rest = match byte {
                    b'\\' => behind_escape(tail)?,
                    b'[' => behind_bracket(tail),
                    _ => tail,
                };
                atom = 1;
                group += 1;
            }
        }
        group = group.saturating_add(atom.saturating_mul(copies - 1));
        atom = atom.saturating_mul(copies);
        if group > LIMIT {
            return Err(EreError::Large);
        }
    }
    Ok(())
}

/// How many copies regcomp makes, at most, of what `{n}`, `{n,}`, `{n,m}` or `{,m}` repeats.
fn most_copies(interval: &[u8]) -> usize {
    let numbers = interval.split(|byte| *byte == b',').map(|digits| {
        let text = std::str::from_utf8(digits).unwrap_or_default();
        // What is not a number, or is too large a one, regcomp refuses.
        text.parse::<u16>().map_or(0, usize::from)
    });
    // `{n,}` is n copies and one that may repeat.
    numbers.max().unwrap_or(0) + 1
}

/// What follows a backslash and its character.
fn behind_escape(text: &[u8]) -> Result<&[u8], EreError> {
    match text {
        [digit @ b'1'..=b'9', ..] => Err(EreError::BackReference(char::from(*digit))),
        [_, rest @ ..] => Ok(rest),
        [] => Ok(text),
    }
}

/// What follows a bracket expression, in which a backslash is a character; `text` begins behind its `[`.
fn behind_bracket(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"^").unwrap_or(text);
    // The first character does not close it, whatever it is.
    let mut rest = text.strip_prefix(b"]").unwrap_or(text);
    loop {
        rest = match rest {
            [] => return rest,
            [b']', rest @ ..] => return rest,
            // `[:alpha:]`, `[.].]`, `[=]=]`.
            [b'[', kind @ (b':' | b'.' | b'='), rest @ ..] => {
                let end = rest.windows(2).position(|pair| pair == [*kind, b']']);
                end.map_or(rest, |at| &rest[at + 2..])
            }
            [_, rest @ ..] => rest,
        };
    }
}

#[cfg(test)]
mod tests;
