//! The screen of a terminal, from the bytes written to it.

use std::mem::take;

/// Rows of characters, and a cursor.
#[derive(Debug)]
pub(crate) struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Bytes of an incomplete character or escape sequence.
    rest: Vec<u8>,
}

impl Screen {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns,
            rows: vec![Vec::new(); rows],
            row: 0,
            column: 0,
            rest: Vec::new(),
        }
    }

    /// All rows.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().collect::<String>());
        rows.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// Width of the widest row.
    pub(crate) fn width(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether the cursor is at the start of an empty row, as a prompt needs it.
    pub(crate) fn is_ready_for_a_prompt(&self) -> bool {
        let below = self.rows[self.row..].iter();
        self.column == 0 && below.clone().all(|row| row.iter().all(|c| *c == ' '))
    }

    /// Cuts rows at the right and lines at the top, as xterm does.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        self.columns = columns;
        self.rows.iter_mut().for_each(|row| row.truncate(columns));
        while self.rows.len() > rows {
            if self.row > 0 {
                self.rows.remove(0);
                self.row -= 1;
            } else {
                self.rows.pop();
            }
        }
        self.rows.resize(rows, Vec::new());
        self.column = self.column.min(columns);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let mut all = take(&mut self.rest);
        all.extend(bytes);
        let mut text = match std::str::from_utf8(&all) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.valid_up_to();
                assert!(error.error_len().is_none(), "no UTF-8: {all:?}");
                self.rest = all[valid..].to_vec();
                std::str::from_utf8(&all[..valid]).unwrap()
            }
        };
        while let Some(c) = text.chars().next() {
            if c == '\x1b' {
                let Some(end) = text[1..].find(|c: char| c.is_ascii_alphabetic()) else {
                    let mut rest = text.as_bytes().to_vec();
                    rest.append(&mut self.rest);
                    self.rest = rest;
                    return;
                };
                let (sequence, after) = text.split_at(end + 2);
                self.run_sequence(sequence);
                text = after;
            } else {
                self.put(c);
                text = &text[c.len_utf8()..];
            }
        }
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.feed(),
            c => {
                assert!(!c.is_control(), "the terminal got {c:?}");
                if self.column == self.columns {
                    self.column = 0;
                    self.feed();
                }
                let row = &mut self.rows[self.row];
                if row.len() <= self.column {
                    row.resize(self.column + 1, ' ');
                }
                row[self.column] = c;
                self.column += 1;
            }
        }
    }

    fn feed(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.remove(0);
            self.rows.push(Vec::new());
            self.row -= 1;
        }
    }

    fn run_sequence(&mut self, sequence: &str) {
        match sequence {
            "\x1b[H" => (self.row, self.column) = (0, 0),
            "\x1b[2K" => self.rows[self.row].clear(),
            "\x1b[J" => {
                self.rows[self.row].truncate(self.column);
                self.rows[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            _ => {
                let up = sequence
                    .strip_prefix("\x1b[")
                    .and_then(|rest| rest.strip_suffix('A'));
                let up: Option<usize> = up.and_then(|count| count.parse().ok());
                let up = up.unwrap_or_else(|| panic!("the terminal got {sequence:?}"));
                self.row = self.row.saturating_sub(up);
            }
        }
    }
}
