//! Writes TOML, without the keys that have their defaults.

use std::fmt::Display;

use super::reader::quoted;

/// The text of a file in the making.
#[derive(Debug, Default)]
pub(super) struct Output {
    text: String,
    /// The header of a table without keys so far.
    header: Option<String>,
}

impl Output {
    /// Begins a table. Its header is left out if no key follows.
    pub(super) fn table(&mut self, name: &str) {
        self.header = Some(format!("[{name}]"));
    }

    /// Begins one of several tables of a name.
    pub(super) fn tables(&mut self, name: &str) {
        self.header = Some(format!("[[{name}]]"));
    }

    /// Writes a number, or another value in the syntax of TOML.
    pub(super) fn key(&mut self, name: &str, value: impl Display) {
        if let Some(header) = self.header.take() {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            self.text += &format!("{gap}{header}\n");
        }
        self.text += &format!("{name} = {value}\n");
    }

    /// Writes a string.
    pub(super) fn text(&mut self, name: &str, value: impl Display) {
        self.key(name, quoted(&value.to_string()));
    }

    /// Writes a list of strings, unless it is empty.
    pub(super) fn texts<T: Display>(&mut self, name: &str, values: &[T]) {
        if !values.is_empty() {
            let shown: Vec<String> = values.iter().map(|one| quoted(&one.to_string())).collect();
            self.key(name, format!("[{}]", shown.join(", ")));
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
