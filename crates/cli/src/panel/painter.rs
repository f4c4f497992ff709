//! Computes the escape sequences that change a panel in place.
//!
//! The panel is at the end of the terminal's output, with the cursor in the first column below it.
//! No mode of the terminal is changed, so that a signal or a panic leaves nothing to restore.

use saiga_sampler::dashboard::Size;

const CLEAR_LINE: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

/// The part of the panel that is on the terminal.
#[derive(Debug, Default)]
pub(super) struct Painter {
    rows: usize,
    widest: usize,
}

impl Painter {
    /// Replaces the current panel by `panel`, which has fewer rows than the terminal.
    pub(super) fn paint(&mut self, panel: &str, size: Size) -> String {
        let mut text = if self.widest > size.columns {
            // The terminal became narrower and has wrapped lines: their number is unknown.
            CLEAR_SCREEN.to_owned()
        } else {
            self.up()
        };
        (self.rows, self.widest) = (0, 0);
        for line in panel.lines() {
            self.rows += 1;
            self.widest = self.widest.max(line.chars().count());
            // Cleared before the text is written: after a full line, the cursor is still in the
            // line, and the sequence would erase the text.
            text.push_str(CLEAR_LINE);
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(CLEAR_BELOW);
        text
    }

    /// Removes the panel; the next output takes its place.
    pub(super) fn erase(&mut self) -> String {
        let text = match self.rows {
            0 => String::new(),
            _ => self.up() + CLEAR_BELOW,
        };
        *self = Self::default();
        text
    }

    /// Moves the cursor to the first column of the panel's first row. The carriage return is needed
    /// because the echo of a key may have moved the cursor.
    fn up(&self) -> String {
        match self.rows {
            0 => "\r".to_owned(),
            rows => format!("\r\x1b[{rows}A"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size(columns: usize) -> Size {
        Size { columns, rows: 24 }
    }

    #[test]
    fn a_panel_is_overwritten_and_removed() {
        let mut painter = Painter::default();
        assert_eq!(
            painter.paint("one\ntwo", size(10)),
            "\r\x1b[2Kone\n\x1b[2Ktwo\n\x1b[J"
        );
        assert_eq!(
            painter.paint("three", size(10)),
            "\r\x1b[2A\x1b[2Kthree\n\x1b[J"
        );
        assert_eq!(painter.erase(), "\r\x1b[1A\x1b[J");
        assert_eq!(painter.erase(), "");
    }

    #[test]
    fn wrapped_lines_are_cleared_with_the_screen() {
        let mut painter = Painter::default();
        painter.paint("1234567890\n12", size(10));
        assert!(painter.paint("12345", size(5)).starts_with("\x1b[H\x1b[J"));
        assert!(painter.paint("12345", size(5)).starts_with("\r\x1b[1A"));
    }
}
