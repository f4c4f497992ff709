//! Lines of text that fit a width: wrapped items with indentation, and small tables.

use saiga_document::printable;

/// Collects lines of at most `width` columns.
pub(super) struct Lines {
    out: String,
    width: usize,
}

impl Lines {
    pub(super) fn new(width: usize) -> Self {
        Self {
            out: String::new(),
            width,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An empty line, unless it would be the first one or the second in a row.
    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Writes a text. Its first line starts with `label` at column `indent`; the text starts at
    /// column `at`, and so do further lines.
    pub(super) fn item(&mut self, indent: usize, at: usize, label: &str, text: &str) {
        let room = self.width.saturating_sub(at).max(20);
        let start = format!("{:indent$}{label}", "");
        for (index, line) in wrapped(&printable(text), room).iter().enumerate() {
            let start = if index == 0 { start.as_str() } else { "" };
            self.push(&format!("{start:at$}{line}"));
        }
    }

    pub(super) fn text(&mut self, indent: usize, text: &str) {
        self.item(indent, indent, "", text);
    }

    /// Writes rows of a label and right-aligned cells, below a heading of the same form. Columns
    /// that do not fit are written below the others, with the labels repeated.
    pub(super) fn table(&mut self, indent: usize, heading: &[String], rows: &[Vec<String>]) {
        let all = || std::iter::once(heading).chain(rows.iter().map(Vec::as_slice));
        let widest = |column: usize| {
            let cells = all().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let label = widest(0);
        let room = self.width.saturating_sub(indent + label);
        let mut start = 1;
        while start < heading.len() {
            let mut end = start;
            let mut used = 0;
            while end < heading.len() && (end == start || used + widest(end) + 2 <= room) {
                used += widest(end) + 2;
                end += 1;
            }
            if start > 1 {
                self.gap();
            }
            for row in all() {
                let name = row.first().map_or("", String::as_str);
                let mut line = format!("{:indent$}{name:label$}", "");
                for column in start..end {
                    let cell = row.get(column).map_or("", String::as_str);
                    line.push_str(&format!("  {cell:>width$}", width = widest(column)));
                }
                self.push(&printable(&line));
            }
            start = end;
        }
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// Lines of at most `width` characters, broken at spaces. A longer list of numbers is broken after
/// a comma, any other longer word anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let space = usize::from(used > 0);
            let room = width.saturating_sub(used + space);
            let fits = word.len() <= room;
            let cut = if fits {
                word.len()
            } else {
                let comma = word.iter().take(room).rposition(|letter| *letter == ',');
                let least = if word.len() > width { 1 } else { usize::MAX };
                let comma = comma.map_or(0, |at| at + 1);
                if comma >= least { comma } else { 0 }
            };
            let cut = if cut == 0 && used == 0 {
                width.min(word.len())
            } else {
                cut
            };
            if cut > 0
                && let Some(line) = lines.last_mut()
            {
                line.extend(std::iter::repeat_n(' ', space));
                line.extend(word.drain(..cut));
                used += space + cut;
            }
            if !word.is_empty() {
                lines.push(String::new());
                used = 0;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_long_lists_after_commas() {
        for (text, expected) in [
            ("one two three", vec!["one two", "three"]),
            ("on 1,3,5,7,9,11,13", vec!["on 1,3,5,", "7,9,11,13"]),
            ("abcdefghijklmn", vec!["abcdefghij", "klmn"]),
            ("on 1,3,5,7,9", vec!["on", "1,3,5,7,9"]),
            ("", vec![""]),
        ] {
            assert_eq!(wrapped(text, 10), expected, "{text}");
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_written_below() {
        let mut lines = Lines::new(20);
        let row = |cells: &[&str]| {
            cells
                .iter()
                .map(|cell| (*cell).to_owned())
                .collect::<Vec<_>>()
        };
        let heading = row(&["node", "0", "1", "2"]);
        lines.table(2, &heading, &[row(&["memory", "1 GiB", "2 GiB"])]);
        let expected = "  node        0\n  memory  1 GiB\n\n  node        1  2\n  memory  2 GiB\n";
        assert_eq!(lines.finish(), expected);
    }
}
