//! What to write so that a panel changes in place.
//!
//! The panel stands at the end of what the terminal shows, with the cursor in the first column below
//! it. No mode of the terminal is changed: whatever ends the process, a signal or a
//! panic, there is nothing to put back.

use saiga_sampler::dashboard::Size;

const CLEAR_LINE: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

/// What of the panel is on the terminal.
#[derive(Debug, Default)]
pub(super) struct Painter {
    rows: usize,
    widest: usize,
}

impl Painter {
    /// Replaces what is there by `panel`, which has fewer rows than the terminal.
    pub(super) fn paint(&mut self, panel: &str, size: Size) -> String {
        let mut text = if self.widest > size.columns {
            // The terminal has wrapped our lines, and nobody knows how many there are now.
            CLEAR_SCREEN.to_owned()
        } else {
            self.up()
        };
        (self.rows, self.widest) = (0, 0);
        for line in panel.lines() {
            self.rows += 1;
            self.widest = self.widest.max(line.chars().count());
            // First, for a full line may be waiting to wrap at its end.
            text.push_str(CLEAR_LINE);
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(CLEAR_BELOW);
        text
    }

    /// Removes it; what is written next stands in its place.
    pub(super) fn erase(&mut self) -> String {
        let text = match self.rows {
            0 => String::new(),
            _ => self.up() + CLEAR_BELOW,
        };
        *self = Self::default();
        text
    }

    /// The cursor may have been moved to the right by the echo of a key.
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
    fn a_panel_is_written_over_and_removed() {
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
    fn lines_that_were_wrapped_are_cleared_with_the_screen() {
        let mut painter = Painter::default();
        painter.paint("1234567890\n12", size(10));
        assert!(painter.paint("12345", size(5)).starts_with("\x1b[H\x1b[J"));
        assert!(painter.paint("12345", size(5)).starts_with("\r\x1b[1A"));
    }
}
