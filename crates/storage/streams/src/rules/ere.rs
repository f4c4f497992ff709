//! POSIX extended regular expressions as in astream: those of the C library, with `REG_NEWLINE`, in
//! the C locale.
//!
//! Two kinds of expressions are refused although glibc accepts them, because their time or memory
//! has no acceptable bound: back-references, for which glibc tries all ways to divide the text, and
//! long repetitions, which it expands before it compiles them (`a+` to `aa*`): `a` with 24 `+`
//! after it takes 2 GB. Expressions that reach a new state of the automaton for each path are
//! accepted, and glibc keeps all these states: the administrator must avoid them.

use std::ffi::CString;
use std::sync::Arc;

use crate::sys::regex::Regex;

/// The most characters of an expression with its repetitions expanded.
const LIMIT: usize = 1024;

/// A compiled extended regular expression.
#[derive(Debug, Clone)]
pub struct Ere(Arc<Regex>);

/// An error of compiling an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EreError {
    #[error(
        "`\\{0}` is a back-reference, which is not supported; write the two cases as two rules"
    )]
    BackReference(char),
    /// Nested repetitions, or a repetition of a thousand times or more.
    #[error("it has more than {LIMIT} characters with its repetitions expanded; repeat less")]
    Large,
    #[error("it contains a NUL byte, which paths cannot contain")]
    Nul,
    /// The message of the C library, which does not accept the expression.
    #[error("{0}")]
    Refused(String),
}

impl Ere {
    pub(super) fn new(expression: &[u8]) -> Result<Self, EreError> {
        let text = CString::new(expression).map_err(|_| EreError::Nul)?;
        measure(expression)?;
        let regex = Regex::new(&text).map_err(EreError::Refused)?;
        Ok(Self(Arc::new(regex)))
    }

    /// Whether the expression matches anywhere in `path`.
    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        CString::new(path).is_ok_and(|path| self.0.is_match(&path))
    }
}

/// Refuses back-references and long repetitions. Invalid expressions may pass: regcomp refuses
/// them.
fn measure(expression: &[u8]) -> Result<(), EreError> {
    // Characters of each enclosing group, of this group, and of the atom that would be repeated.
    let (mut enclosing, mut group, mut atom) = (Vec::new(), 0_usize, 0_usize);
    let mut rest = expression;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        let mut copies = 1;
        match byte {
            b'(' => {
                enclosing.push(group);
                (group, atom) = (0, 0);
            }
            b')' => {
                atom = group + 1;
                group = enclosing.pop().unwrap_or(0) + atom;
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
                    b'\\' => after_escape(tail)?,
                    b'[' => after_bracket(tail),
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

/// Returns the most copies that regcomp makes of an atom before `{n}`, `{n,}`, `{n,m}` or `{,m}`.
fn most_copies(interval: &[u8]) -> usize {
    let numbers = interval.split(|byte| *byte == b',').map(|digits| {
        let text = std::str::from_utf8(digits).unwrap_or_default();
        // regcomp refuses invalid and too large numbers.
        text.parse::<u16>().map_or(0, usize::from)
    });
    // `{n,}` is n copies and one with `*`.
    numbers.max().unwrap_or(0) + 1
}

/// Returns the text after an escaped character; `text` begins after the backslash.
fn after_escape(text: &[u8]) -> Result<&[u8], EreError> {
    match text {
        [digit @ b'1'..=b'9', ..] => Err(EreError::BackReference(char::from(*digit))),
        [_, rest @ ..] => Ok(rest),
        [] => Ok(text),
    }
}

/// Returns the text after a bracket expression; `text` begins after its `[`. A backslash is an
/// ordinary character there.
fn after_bracket(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"^").unwrap_or(text);
    // A `]` that comes first does not close the expression.
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
