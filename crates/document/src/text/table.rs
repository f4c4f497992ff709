//! Aligned columns for the terminal.

use crate::model::{Align, Tone};
use crate::untrusted::printable;

const GAP: &str = "  ";

/// Collects the rows of a table and aligns them when they are rendered.
pub(super) struct Grid {
    columns: Vec<Align>,
    rows: Vec<Line>,
}

enum Line {
    Group(String),
    Cells(Vec<GridCell>),
}

/// Text of a cell, with the number of its SGR escape sequence; empty for plain text.
pub(super) struct GridCell {
    text: String,
    sgr: &'static str,
}

impl GridCell {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: printable(text).replace('\n', " "),
            sgr: "",
        }
    }

    pub(super) fn heading(text: &str) -> Self {
        Self {
            sgr: "2",
            ..Self::new(text)
        }
    }

    pub(super) fn toned(text: &str, tone: Tone) -> Self {
        Self {
            sgr: code(tone),
            ..Self::new(text)
        }
    }
}

impl Grid {
    pub(super) fn new(columns: Vec<Align>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<GridCell>) {
        self.rows.push(Line::Cells(cells));
    }

    pub(super) fn group(&mut self, title: &str) {
        self.rows
            .push(Line::Group(printable(title).replace('\n', " ")));
    }

    pub(super) fn drop_column(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            if let Line::Cells(cells) = row {
                cells.remove(column);
            }
        }
    }

    /// Width of the widest row, in columns of the terminal.
    pub(super) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.columns.len()];
        for row in &self.rows {
            if let Line::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.text.chars().count());
                }
            }
        }
        widths
    }

    pub(super) fn render(&self, out: &mut String, colour: bool) {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            match row {
                Line::Group(title) => line.push_str(&painted(title, "1", colour)),
                Line::Cells(cells) => {
                    for ((cell, align), width) in cells.iter().zip(&self.columns).zip(&widths) {
                        let space = " ".repeat(width - cell.text.chars().count());
                        let text = painted(&cell.text, cell.sgr, colour);
                        match align {
                            Align::Left => line.push_str(&format!("{text}{space}{GAP}")),
                            Align::Right => line.push_str(&format!("{space}{text}{GAP}")),
                        }
                    }
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// The SGR number of a tone's colour; empty for the terminal's own colour.
pub(super) fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Better => "32",
        Tone::Worse => "31",
        Tone::Caution => "33",
        Tone::Neutral => "",
    }
}

/// The text within an SGR escape sequence; unchanged without `colour` or without an SGR number.
pub(super) fn painted(text: &str, sgr: &str, colour: bool) -> String {
    if colour && !sgr.is_empty() && !text.is_empty() {
        format!("\u{1b}[{sgr}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
