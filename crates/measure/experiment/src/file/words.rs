//! Splits a command line into words by the quoting rules of a shell.
//!
//! Spec: POSIX.1-2017, Shell Command Language, 2.2 Quoting. Deliberately absent: expansion, pipes,
//! redirection; commands that need them are hooks, or use `sh -c '...'`.

/// The text cannot be split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// A quotation mark or a backslash has no end.
    #[error("a quotation mark is not closed")]
    OpenQuote,
    /// An unquoted operator of a shell.
    #[error(
        "{0:?} is an operator of a shell, but no shell is used; quote it, or write sh -c '...'"
    )]
    ForShell(char),
    #[error("the command is empty")]
    Empty,
}

/// Splits a command line into words.
pub fn split(text: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        None => return Err(WordsError::OpenQuote),
                        Some('\'') => break,
                        Some(inner) => word.push(inner),
                    }
                }
            }
            '"' => double_quoted(&mut letters, word.get_or_insert_default())?,
            '\\' => match letters.next() {
                None => return Err(WordsError::OpenQuote),
                Some('\n') => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            '&' | '|' | ';' | '<' | '>' | '`' | '(' | ')' => {
                return Err(WordsError::ForShell(letter));
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(WordsError::Empty);
    }
    Ok(words)
}

fn double_quoted(
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    word: &mut String,
) -> Result<(), WordsError> {
    loop {
        match letters.next() {
            None => return Err(WordsError::OpenQuote),
            Some('"') => return Ok(()),
            Some('\\') => match letters.next() {
                None => return Err(WordsError::OpenQuote),
                Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
            },
            Some(inner) => word.push(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_in_a_shell() {
        for (text, words) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            ("redis-server --save ''", vec!["redis-server", "--save", ""]),
            (
                r#"sh -c 'a | b' "c \" \d""#,
                vec!["sh", "-c", "a | b", r#"c " \d"#],
            ),
            (r"x\ y z\|", vec!["x y", "z|"]),
            ("a \\\n  b", vec!["a", "b"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert_eq!(split("a 'b"), Err(WordsError::OpenQuote));
        assert_eq!(split("a & "), Err(WordsError::ForShell('&')));
        assert_eq!(split(" "), Err(WordsError::Empty));
    }
}
