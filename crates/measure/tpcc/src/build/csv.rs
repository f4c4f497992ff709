//! Writes CSV files instead of loading a database, as BenchmarkSQL does with `fileLocation`.
//!
//! File names and column order are BenchmarkSQL's, so that its `tableCopies.sql` can load them. An
//! incomplete file has the suffix `.part`. One thread writes each file, warehouse by warehouse, so
//! that a seed always gives the same files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use saiga_process::replace;

use super::{BuildError, Event, Stop};
use crate::db::value::{Decimal, Stamp};
use crate::population::{Population, Sink};
use crate::props::Csv;
use crate::script::Step;
use crate::state::{self, Stage};
use crate::table::Table;

/// The parameters for writing CSV files.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// Prefix of the file names, and the text for NULL.
    pub csv: &'a Csv,
    pub population: Population,
    /// First and last warehouse. CONFIG and ITEM are written if the first warehouse is 1.
    pub range: (u32, u32),
    /// Number of files that are written at the same time.
    pub workers: u32,
    /// Polled; writing ends once it returns true.
    pub stop: Stop<'a>,
    /// Called for each event.
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

impl std::fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("csv", self.csv)
            .finish_non_exhaustive()
    }
}

/// Tables by size. The largest come first, so that no large file is written alone at the end.
const BY_SIZE: [Table; 10] = [
    Table::Stock,
    Table::OrderLine,
    Table::Customer,
    Table::History,
    Table::Order,
    Table::NewOrder,
    Table::Item,
    Table::District,
    Table::Warehouse,
    Table::Config,
];

impl Files<'_> {
    /// Writes all files and returns their paths. Never overwrites a file. After an error,
    /// incomplete files are removed.
    pub fn write(&self) -> Result<Vec<PathBuf>, BuildError> {
        let tables: Vec<Table> = BY_SIZE
            .into_iter()
            .filter(|table| self.has(*table))
            .collect();
        let paths: Vec<PathBuf> = tables.iter().map(|table| self.path(*table)).collect();
        if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
            return Err(BuildError::FileExists { path: path.clone() });
        }
        let workers = (self.workers as usize).min(tables.len());
        let warehouses = self.range.1 + 1 - self.range.0;
        let seed = self.population.seed;
        (self.on_event)(Event::Loading {
            warehouses,
            workers,
            seed,
        });
        let before = Instant::now();
        let written = self.write_parts(&tables, workers);
        let named = written.and_then(|()| paths.iter().try_for_each(|path| name(path)));
        if let Err(error) = named {
            for path in &paths {
                let _ = fs::remove_file(part(path)); // The file may not exist.
            }
            return Err(error);
        }
        (self.on_event)(Event::Loaded {
            took: before.elapsed(),
        });
        Ok(paths)
    }

    fn has(&self, table: Table) -> bool {
        self.range.0 == 1 || Table::OF_WAREHOUSE.contains(&table)
    }

    fn path(&self, table: Table) -> PathBuf {
        PathBuf::from(format!("{}{}", self.csv.prefix, table.csv_name()))
    }

    fn write_parts(&self, tables: &[Table], workers: usize) -> Result<(), BuildError> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let problem = Mutex::new(None);
        let work = || {
            while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                let over = || failed.load(Ordering::Relaxed) || (self.stop)();
                if over() {
                    return;
                }
                let path = part(&self.path(*table));
                if let Err(error) = self.write_table(*table, &path, &over) {
                    failed.store(true, Ordering::Relaxed);
                    let mut first = problem
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    first.get_or_insert(BuildError::File { path, error });
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        if (self.stop)() {
            return Err(BuildError::Stopped);
        }
        let problem = problem
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        problem.map_or(Ok(()), Err)
    }

    fn write_table(&self, table: Table, path: &Path, over: &dyn Fn() -> bool) -> io::Result<()> {
        let mut writer = Writer::new(File::create(path)?, table, &self.csv.null);
        match table {
            Table::Config => {
                // Another tool loads the rows, so the recorded stage is the first step after them.
                state::write(&self.population, Stage::ROWS_DONE, &mut writer)?;
            }
            Table::Item => self.population.write_common(table, &mut writer)?,
            Table::Warehouse
            | Table::District
            | Table::Stock
            | Table::Customer
            | Table::History
            | Table::Order
            | Table::OrderLine
            | Table::NewOrder => {
                for w_id in self.range.0..=self.range.1 {
                    if over() {
                        return Ok(());
                    }
                    self.population.write(table, w_id, &mut writer)?;
                    (self.on_event)(Event::Rows(std::mem::take(&mut writer.rows)));
                    if table == BY_SIZE[0] {
                        (self.on_event)(Event::Warehouse(w_id));
                    }
                }
            }
        }
        let file = writer
            .csv
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?;
        file.sync_all()
    }
}

/// The path of a file while it is incomplete.
fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Gives a complete file its final name.
fn name(path: &Path) -> Result<(), BuildError> {
    replace::publish(&part(path), path).map_err(|error| BuildError::File {
        path: path.to_owned(),
        error,
    })
}

/// Writes the rows of one table.
struct Writer<'a> {
    csv: csv::Writer<File>,
    null: &'a str,
    /// Column in the file of each leading field; the other fields keep their order.
    positions: &'static [usize],
    /// The fields of the current row, in the order of the file.
    fields: Vec<String>,
    at: usize,
    rows: u64,
}

/// Columns of the key fields in the order of `tableCopies.sql`. The other fields keep their order.
fn positions(table: Table) -> &'static [usize] {
    match table {
        Table::District | Table::Stock => &[1, 0],
        Table::Customer => &[2, 1, 0],
        Table::Order => &[1, 2, 0],
        Table::Config
        | Table::Item
        | Table::Warehouse
        | Table::History
        | Table::OrderLine
        | Table::NewOrder => &[],
    }
}

impl<'a> Writer<'a> {
    fn new(file: File, table: Table, null: &'a str) -> Self {
        Self {
            csv: csv::WriterBuilder::new()
                .has_headers(false)
                .buffer_capacity(1 << 17)
                .from_writer(file),
            null,
            positions: positions(table),
            fields: vec![String::new(); table.columns().len()],
            at: 0,
            rows: 0,
        }
    }

    /// The next field of the current row.
    fn field(&mut self) -> &mut String {
        let column = self.positions.get(self.at).copied().unwrap_or(self.at);
        self.at += 1;
        let field = &mut self.fields[column];
        field.clear();
        field
    }

    fn put(&mut self, value: impl std::fmt::Display) {
        use std::fmt::Write;
        // Writing to a String does not fail.
        let _ = write!(self.field(), "{value}");
    }
}

impl Sink for Writer<'_> {
    type Error = io::Error;

    fn int(&mut self, value: i64) {
        self.put(value);
    }

    fn decimal(&mut self, units: i64, scale: u32) {
        self.put(Decimal { units, scale });
    }

    fn text(&mut self, value: &str) {
        self.field().push_str(value);
    }

    fn time(&mut self, seconds: i64) {
        self.put(Stamp::of(seconds));
    }

    fn null(&mut self) {
        let null = self.null;
        self.field().push_str(null);
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.at = 0;
        self.rows += 1;
        self.csv.write_record(&self.fields).map_err(io::Error::from)
    }
}

impl Stage {
    /// All rows are loaded, and no later step has begun.
    pub const ROWS_DONE: Self = Self::Step(Step::IndexCreates, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes warehouses of a range into a new folder.
    fn written(range: (u32, u32)) -> (tempfile::TempDir, Result<Vec<PathBuf>, BuildError>) {
        let dir = tempfile::tempdir().unwrap();
        let csv = Csv {
            prefix: format!("{}/x-", dir.path().display()),
            null: "NULL".to_owned(),
        };
        let files = Files {
            csv: &csv,
            population: Population::new(3, 2, 0),
            range,
            workers: 2,
            stop: &|| false,
            on_event: &|_| (),
        };
        let written = files.write();
        (dir, written)
    }

    /// The first line of a file.
    fn first(dir: &tempfile::TempDir, name: &str) -> String {
        let text = fs::read_to_string(dir.path().join(format!("x-{name}"))).unwrap();
        text.lines().next().unwrap().to_owned()
    }

    #[test]
    fn files_have_the_names_and_columns_of_table_copies() {
        let (dir, written) = written((1, 1));
        assert_eq!(written.unwrap().len(), 10);
        let begins = |name: &str, start: &str| {
            let line = first(&dir, name);
            assert!(line.starts_with(start), "{name}: {line}");
        };
        begins("config.csv", "warehouses,2");
        begins("warehouse.csv", "1,300000.00,0.");
        // s_i_id, s_w_id; d_id, d_w_id; c_id, c_d_id, c_w_id; o_id, o_w_id, o_d_id.
        begins("stock.csv", "1,1,");
        begins("district.csv", "1,1,30000.00,");
        begins("customer.csv", "1,1,1,0.");
        begins("order.csv", "1,1,1,");
        begins("cust-hist.csv", "1,1,1,1,1,1,1970-01-01 00:00:00,10.00,");
        begins("new-order.csv", "1,1,2101");
        let text = |name: &str| fs::read_to_string(dir.path().join(format!("x-{name}"))).unwrap();
        let orders = text("order.csv");
        let last = orders.lines().last().unwrap();
        assert!(
            last.starts_with("3000,1,10,") && last.contains(",NULL,"),
            "{last}"
        );
        assert!(
            text("stock.csv")
                .lines()
                .nth(1)
                .unwrap()
                .starts_with("2,1,")
        );
        assert!(
            text("customer.csv")
                .lines()
                .nth(3000)
                .unwrap()
                .starts_with("1,2,1,")
        );
        assert!(text("config.csv").contains("saiga_build,indexCreates 0\n"));
        assert_eq!(text("customer.csv").lines().count(), 30_000);
    }

    #[test]
    fn tables_without_a_warehouse_are_written_with_the_first_one() {
        let (dir, written) = written((2, 2));
        assert_eq!(written.unwrap().len(), 8);
        assert!(first(&dir, "district.csv").starts_with("1,2,"));
        assert!(!dir.path().join("x-item.csv").exists());
    }

    #[test]
    fn an_existing_file_is_kept_and_a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |prefix: String| {
            let csv = Csv {
                prefix,
                null: String::new(),
            };
            let files = Files {
                csv: &csv,
                population: Population::new(3, 1, 0),
                range: (1, 1),
                workers: 4,
                stop: &|| false,
                on_event: &|_| (),
            };
            files.write().unwrap_err().to_string()
        };
        fs::write(dir.path().join("item.csv"), "mine").unwrap();
        let said = write(format!("{}/", dir.path().display()));
        assert!(
            said.contains("item.csv exists already; remove it"),
            "{said}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let said = write(format!("{}/none/", dir.path().display()));
        assert!(
            said.starts_with("cannot write ") && said.contains("No such file"),
            "{said}"
        );
    }
}
