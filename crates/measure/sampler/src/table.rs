//! The current row and the names of its columns. New columns are added at the end; none is removed.

use std::collections::HashMap;
use std::sync::Arc;

/// Index of a metric in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column(usize);

/// The values of the current row, by column.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    indices: HashMap<String, usize>,
    cells: Vec<Option<f64>>,
    /// A copy of `names` for snapshots; `None` after a column was added.
    shared: Option<Arc<[String]>>,
}

impl Table {
    /// Adds a column. If the name is taken, because two devices have the same name without special
    /// characters, the later column gets a number.
    pub(crate) fn column(&mut self, name: &str) -> Column {
        let plain = plain(name);
        let mut unique = plain.clone();
        let mut number = 2;
        while self.indices.contains_key(&unique) {
            unique = format!("{plain}_{number}");
            number += 1;
        }
        self.indices.insert(unique.clone(), self.names.len());
        self.names.push(unique);
        self.cells.push(None);
        self.shared = None;
        Column(self.names.len() - 1)
    }

    /// Fills a cell. A value that is not finite becomes `None`.
    pub(crate) fn put(&mut self, column: Column, value: Option<f64>) {
        self.cells[column.0] = value.filter(|value| value.is_finite());
    }

    /// The value of a metric in the current row.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.cells[*self.indices.get(name)?]
    }

    /// Empties all cells and keeps the columns.
    pub(crate) fn clear(&mut self) {
        self.cells.fill(None);
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn cells(&self) -> &[Option<f64>] {
        &self.cells
    }

    /// The names in shared memory, for snapshots of rows.
    pub(crate) fn shared_names(&mut self) -> Arc<[String]> {
        let names = &self.names;
        let shared = self.shared.get_or_insert_with(|| names.as_slice().into());
        Arc::clone(shared)
    }
}

/// `name` with `_` for every character that could break a line of CSV. The name of a network
/// interface may contain such characters.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
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
    fn values_that_are_not_finite_are_unknown() {
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
