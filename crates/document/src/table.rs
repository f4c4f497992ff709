//! Plain text tables: columns as wide as their widest cell, numbers right-aligned.

use std::fmt;

/// A table with a fixed number of columns.
pub struct Table<const N: usize>(Grid);

/// A table whose number of columns is known at run time only.
pub struct Grid {
    rows: Vec<Vec<String>>,
}

impl<const N: usize> Table<N> {
    pub fn new(header: [&str; N]) -> Self {
        Self(Grid::new(header.map(str::to_owned).into()))
    }

    pub fn row(&mut self, cells: [String; N]) {
        self.0.row(cells.into());
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Grid {
    pub fn new(header: Vec<String>) -> Self {
        Self { rows: vec![header] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        // Control characters in names must not end the line or control the terminal.
        let cells = cells.into_iter();
        self.rows.push(
            cells
                .map(|cell| cell.replace(char::is_control, "?"))
                .collect(),
        );
    }

    fn width(&self, column: usize) -> usize {
        let width = |row: &Vec<String>| row.get(column).map_or(0, |cell| cell.chars().count());
        self.rows.iter().map(width).max().unwrap_or(0)
    }

    /// A column is numeric if every cell below its header starts with a digit.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self
            .rows
            .iter()
            .skip(1)
            .filter_map(|row| row.get(column))
            .peekable();
        cells.peek().is_some()
            && cells.all(|cell| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(usize, bool)> = (0..self.rows[0].len())
            .map(|column| (self.width(column), self.is_numeric(column)))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, (width, numeric)) in row.iter().zip(&columns) {
                let gap = " ".repeat(width - cell.chars().count());
                let (before, after) = if *numeric {
                    (gap, String::new())
                } else {
                    (String::new(), gap)
                };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a".to_owned(), "100".to_owned()]);
        table.row(["longer".to_owned(), "7".to_owned()]);
        assert_eq!(table.to_string(), "name      n\na       100\nlonger    7\n");
    }

    #[test]
    fn control_characters_in_cells_are_replaced() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a\n\u{1b}[31mb".to_owned(), "1".to_owned()]);
        assert_eq!(table.to_string(), "name      n\na??[31mb  1\n");
    }
}
