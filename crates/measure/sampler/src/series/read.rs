//! Reads all columns or some columns of a series file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{MARK, Mark, TIME};

/// A series file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// A line does not have the format.
    #[error("{path}, line {line}: {reason}; the file is not a series file of saiga, or was edited")]
    Line {
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        reason: &'static str,
    },
}

/// A series in memory, column by column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Names of the columns without `time_s`.
    pub names: Vec<String>,
    /// End of each row's interval, in seconds since the start.
    pub times_s: Vec<f64>,
    pub marks: Vec<Mark>,
    /// Whether the last line was incomplete and left out.
    pub is_torn: bool,
    /// Unknown values are NaN, which needs half the space of an `Option`.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Series {
    /// A series of computed columns, each with a value for every time.
    pub fn of(
        times_s: Vec<f64>,
        columns: impl IntoIterator<Item = (String, Vec<Option<f64>>)>,
    ) -> Self {
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let columns = columns
            .into_iter()
            .map(|(name, values)| (name, values.into_iter().map(number).collect()));
        let (names, columns) = columns.unzip();
        Self {
            names,
            times_s,
            columns,
            ..Self::default()
        }
    }

    /// Reads all columns of a file. An incomplete last line is not an error.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::read_columns(path, |_| true)
    }

    /// Reads the columns whose names `wanted` accepts. The file of 12 hours on 256 cores has a
    /// hundred million cells. An incomplete last line is not an error.
    pub fn read_columns(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let mut reader = Reader::default();
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            if file.read_line(&mut line).map_err(io)? == 0 {
                break;
            }
            let Some(whole) = line.strip_suffix('\n') else {
                reader.series.is_torn = true;
                break;
            };
            reader
                .line(whole, &wanted)
                .map_err(|reason| ReadError::Line {
                    path: path.to_owned(),
                    line: number,
                    reason,
                })?;
        }
        Ok(reader.series)
    }

    /// The values of a column, one per row; `None` for an unknown column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<impl Iterator<Item = Option<f64>>> {
        let index = self.names.iter().position(|known| known == name)?;
        let known = |value: &f64| (!value.is_nan()).then_some(*value);
        Some(self.columns.get(index)?.iter().map(known))
    }
}

#[derive(Debug, Default)]
struct Reader {
    series: Series,
    has_names: bool,
    /// All names of the file so far.
    names: Vec<String>,
    /// For each of `names`, the index of its column in `series`; `None` for unwanted columns.
    indices: Vec<Option<usize>>,
}

impl Reader {
    fn line(&mut self, line: &str, wanted: impl Fn(&str) -> bool) -> Result<(), &'static str> {
        if let Some(mark) = line.strip_prefix(MARK) {
            let (time, name) = mark.split_once(' ').ok_or("a mark without a name")?;
            self.series.marks.push(Mark {
                time_s: time.parse().map_err(|_| "a mark without a time")?,
                name: name.to_owned(),
            });
            return Ok(());
        }
        match line.strip_prefix(TIME) {
            Some(names) => self.header(names, wanted),
            None if self.has_names => self.row(line),
            None => Err("the names of the columns are missing"),
        }
    }

    fn header(&mut self, names: &str, wanted: impl Fn(&str) -> bool) -> Result<(), &'static str> {
        self.has_names = true;
        let names: Vec<&str> = names.split(',').skip(1).collect();
        let (old, new) = names
            .split_at_checked(self.names.len())
            .ok_or("there are fewer columns than before")?;
        if old.iter().zip(&self.names).any(|(old, known)| old != known) {
            return Err("a column has changed its name");
        }
        for name in new {
            self.names.push((*name).to_owned());
            let index = wanted(name).then_some(self.series.names.len());
            self.indices.push(index);
            if index.is_some() {
                self.series.names.push((*name).to_owned());
                // The device was not present in earlier rows.
                let unknown = vec![f64::NAN; self.series.times_s.len()];
                self.series.columns.push(unknown);
            }
        }
        Ok(())
    }

    fn row(&mut self, line: &str) -> Result<(), &'static str> {
        let mut cells = line.split(',');
        let time = cells.next().and_then(|time| time.parse().ok());
        self.series
            .times_s
            .push(time.ok_or("the time is not a number")?);
        for index in &self.indices {
            let cell = cells.next().ok_or("there are fewer cells than names")?;
            let Some(column) = index.and_then(|index| self.series.columns.get_mut(index)) else {
                continue;
            };
            column.push(match cell {
                "" => f64::NAN,
                cell => cell.parse().map_err(|_| "a cell is not a number")?,
            });
        }
        match cells.next() {
            Some(_) => Err("there are more cells than names"),
            None => Ok(()),
        }
    }
}
