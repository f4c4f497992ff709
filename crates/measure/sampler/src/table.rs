//! One row and the names of its columns. Columns are only ever added, at the end.

use std::collections::HashMap;
use std::sync::Arc;

/// The place of a metric in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column(usize);

/// The row that is being made.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    places: HashMap<String, usize>,
    cells: Vec<Option<f64>>,
    /// What readers of rows get; made again when a column was added.
    shared: Option<Arc<[String]>>,
}

impl Table {
    /// A new column. Two devices may become the same word; the later one gets a number.
    pub(crate) fn column(&mut self, name: &str) -> Column {
        let plain = word(name);
        let mut unique = plain.clone();
        let mut number = 2;
        while self.places.contains_key(&unique) {
            unique = format!("{plain}_{number}");
            number += 1;
        }
        self.places.insert(unique.clone(), self.names.len());
        self.names.push(unique);
        self.cells.push(None);
        self.shared = None;
        Column(self.names.len() - 1)
    }

    /// Fills a cell; what is not a number is not known.
    pub(crate) fn put(&mut self, column: Column, value: Option<f64>) {
        self.cells[column.0] = value.filter(|value| value.is_finite());
    }

    /// The value of a metric in this row.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.cells[*self.places.get(name)?]
    }

    /// Empties the row.
    pub(crate) fn clear(&mut self) {
        self.cells.fill(None);
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn cells(&self) -> &[Option<f64>] {
        &self.cells
    }

    /// The names, for those who keep rows.
    pub(crate) fn shared_names(&mut self) -> Arc<[String]> {
        let names = &self.names;
        let shared = self.shared.get_or_insert_with(|| names.as_slice().into());
        Arc::clone(shared)
    }
}

/// `name` with what would break a line of CSV replaced; names of interfaces may hold anything.
fn word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_unique() {
        let mut table = Table::default();
        for name in ["net_a,b_rx_kb_s", "net_a b_rx_kb_s", "net_a\nb_rx_kb_s"] {
            table.column(name);
        }
        assert_eq!(
            table.names(),
            ["net_a_b_rx_kb_s", "net_a_b_rx_kb_s_2", "net_a_b_rx_kb_s_3"]
        );
    }

    #[test]
    fn what_is_no_number_is_not_known() {
        let mut table = Table::default();
        let columns = [table.column("a"), table.column("b"), table.column("c")];
        for (column, value) in columns.into_iter().zip([f64::NAN, f64::INFINITY, 1.5]) {
            table.put(column, Some(value));
        }
        assert_eq!(table.cells(), [None, None, Some(1.5)]);
        table.clear();
        assert_eq!(table.cells(), [None, None, None]);
    }

    #[test]
    fn shared_names_follow_new_columns() {
        let mut table = Table::default();
        table.column("a");
        let before = table.shared_names();
        assert!(Arc::ptr_eq(&before, &table.shared_names()));
        table.column("b");
        assert_eq!(table.shared_names().as_ref(), ["a", "b"]);
    }
}
