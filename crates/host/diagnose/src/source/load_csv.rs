//! A CSV file of the load at one hop: time, clients, throughput and response time.
//!
//! The first line names the columns; order and other columns do not matter. Accepted names, without
//! regard to case: `time`, `t`, `time_s`, `seconds`, `elapsed`; `N`, `clients`, `concurrency`,
//! `threads`; `X`, `tps`, `qps`, `throughput`, `throughput_s`; `R_ms`, `response_ms`, `latency_ms`,
//! and the same with `_s` and `_us`. A response time without a unit is refused.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::observation::Gap;
use crate::observation::load::{Hop, Window};

/// A file is not usable.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: csv::Error },
    /// A column is missing.
    #[error("{path} has no column for {wanted}: name it {names}")]
    Column {
        path: PathBuf,
        wanted: &'static str,
        names: String,
    },
    /// The response time has no unit.
    #[error("{path}: the unit of the column {column} is unknown; name it R_ms, R_s or R_us")]
    Unit { path: PathBuf, column: String },
    /// No line can be used.
    #[error("{path} has no line that can be used ({why})")]
    Empty { path: PathBuf, why: String },
}

/// A quantity with the names of its column.
struct Quantity {
    wanted: &'static str,
    names: &'static [&'static str],
}

const TIME: Quantity = Quantity {
    wanted: "the time",
    names: &["time", "t", "time_s", "seconds", "elapsed"],
};
const CLIENTS: Quantity = Quantity {
    wanted: "the number of clients",
    names: &["n", "clients", "concurrency", "threads"],
};
const THROUGHPUT: Quantity = Quantity {
    wanted: "the throughput",
    names: &["x", "tps", "qps", "throughput", "throughput_s"],
};
/// Names of the response time, before `_ms`, `_s` or `_us`.
const RESPONSE: [&str; 3] = ["r", "response", "latency"];
/// Units of the response time with their factor to milliseconds.
const UNITS: [(&str, f64); 3] = [("_ms", 1.0), ("_s", 1000.0), ("_us", 0.001)];

/// Reads a hop. Lines that cannot be used are left out and reported.
///
/// # Errors
/// The file cannot be read, lacks a column, or has no line that can be used.
pub fn read(name: &str, path: &Path, content: impl Read) -> Result<(Hop, Vec<Gap>), LoadError> {
    let read_error = |source| LoadError::Read {
        path: path.to_owned(),
        source,
    };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(content);
    let header = reader.headers().map_err(read_error)?.clone();
    let columns = [TIME, CLIENTS, THROUGHPUT].map(|quantity| column(path, &header, &quantity));
    let [time, clients, throughput] = columns;
    let columns = [time?, clients?, throughput?];
    let (response, factor) = response(path, &header)?;
    let mut windows: Vec<Window> = Vec::new();
    let mut left_out = LeftOut::default();
    for line in reader.records() {
        let line = match line {
            Ok(line) => line,
            Err(error) if error.is_io_error() => return Err(read_error(error)),
            Err(error) => {
                left_out.add(0, format!("{error}"));
                continue;
            }
        };
        let at = line.position().map_or(0, csv::Position::line);
        let cell = |column: usize| line.get(column).and_then(|text| text.parse::<f64>().ok());
        let [time_s, clients, throughput] = columns.map(cell);
        let numbers = (time_s, clients, throughput, cell(response));
        let (Some(time_s), Some(clients), Some(throughput), Some(time)) = numbers else {
            left_out.add(at, "a value is missing or is not a number".to_owned());
            continue;
        };
        let window = Window {
            time_s,
            clients,
            throughput,
            response_ms: time * factor,
            run: 0,
        };
        match problem(windows.last(), &window) {
            Some(why) => left_out.add(at, why),
            None => windows.push(window),
        }
    }
    if windows.is_empty() {
        return Err(LoadError::Empty {
            path: path.to_owned(),
            why: left_out
                .first
                .map_or("it is empty".to_owned(), |(at, why)| {
                    format!("line {at}: {why}")
                }),
        });
    }
    Ok((Hop::new(name, windows), left_out.gaps(path)))
}

/// The index of a quantity's column.
fn column(
    path: &Path,
    header: &csv::StringRecord,
    quantity: &Quantity,
) -> Result<usize, LoadError> {
    let found = header.iter().position(|name| {
        let lower = name.to_ascii_lowercase();
        quantity.names.contains(&lower.as_str())
    });
    found.ok_or_else(|| LoadError::Column {
        path: path.to_owned(),
        wanted: quantity.wanted,
        names: quantity.names.join(", "),
    })
}

/// The index of the response time's column, and its factor to milliseconds.
fn response(path: &Path, header: &csv::StringRecord) -> Result<(usize, f64), LoadError> {
    for (index, name) in header.iter().enumerate() {
        let lower = name.to_ascii_lowercase();
        for (unit, factor) in UNITS {
            if lower
                .strip_suffix(unit)
                .is_some_and(|stem| RESPONSE.contains(&stem))
            {
                return Ok((index, factor));
            }
        }
        if RESPONSE.contains(&lower.as_str()) {
            return Err(LoadError::Unit {
                path: path.to_owned(),
                column: name.to_owned(),
            });
        }
    }
    Err(LoadError::Column {
        path: path.to_owned(),
        wanted: "the response time",
        names: "R_ms, R_s, R_us, response_ms or latency_ms".to_owned(),
    })
}

/// Why a window cannot be used behind the one before.
fn problem(before: Option<&Window>, window: &Window) -> Option<String> {
    let Window {
        time_s,
        clients,
        throughput,
        response_ms,
        run: _,
    } = *window;
    if [time_s, clients, throughput, response_ms]
        .iter()
        .any(|one| !one.is_finite())
    {
        return Some("a value is not finite".to_owned());
    }
    if clients <= 0.0 {
        return Some("N is 0 or negative: without clients there is no load".to_owned());
    }
    if throughput < 0.0 || response_ms < 0.0 {
        return Some("a value is negative".to_owned());
    }
    before
        .filter(|before| time_s <= before.time_s)
        .map(|before| {
            format!(
                "the clock does not advance: {time_s} after {}",
                before.time_s
            )
        })
}

/// Lines that cannot be used.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// Line number and reason of the first one.
    first: Option<(u64, String)>,
}

impl LeftOut {
    fn add(&mut self, line: u64, why: String) {
        self.count += 1;
        self.first.get_or_insert((line, why));
    }

    fn gaps(self, path: &Path) -> Vec<Gap> {
        let gap = |(line, why)| Gap {
            source: path.display().to_string(),
            reason: format!(
                "{} left out, the first in line {line}: {why}",
                saiga_document::number::counted(self.count, "line")
            ),
        };
        self.first.map(gap).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Hop, Vec<Gap>), LoadError> {
        read("client", Path::new("a.csv"), text.as_bytes())
    }

    #[track_caller]
    fn refusal(text: &str) -> String {
        parsed(text)
            .map(|(hop, _)| hop.windows.len())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn columns_have_any_order_and_units() {
        let (hop, gaps) =
            parsed("R_s,extra,N,time,X\n0.29,a,3000,0,10000\n0.5,b,5000,1,9856\n").unwrap();
        assert_eq!(gaps, []);
        assert_eq!(hop.windows.len(), 2);
        let Window {
            time_s,
            clients,
            throughput,
            response_ms,
            run: _,
        } = hop.windows[0];
        assert_eq!(
            (time_s, clients, throughput, response_ms),
            (0.0, 3000.0, 10_000.0, 290.0)
        );
    }

    #[test]
    fn missing_columns_and_units_are_named() {
        assert_eq!(
            refusal("time,X,R_ms\n"),
            "a.csv has no column for the number of clients: name it n, clients, concurrency, threads"
        );
        assert_eq!(
            refusal("time,N,X\n"),
            "a.csv has no column for the response time: name it R_ms, R_s, R_us, response_ms or \
             latency_ms"
        );
        assert_eq!(
            refusal("time,N,X,R\n"),
            "a.csv: the unit of the column R is unknown; name it R_ms, R_s or R_us"
        );
        assert_eq!(
            refusal("time,N,X,R_ms\n"),
            "a.csv has no line that can be used (it is empty)"
        );
    }

    #[test]
    fn lines_that_cannot_be_used_are_left_out_and_counted() {
        let (hop, gaps) =
            parsed("t,N,X,R_ms\n0,10,5,1\n1,0,5,1\n0.5,10,5,1\n0,10,5,1\n2,10,x,1\n3,10,5")
                .unwrap();
        assert_eq!(hop.windows.len(), 2, "{hop:?}");
        assert_eq!(
            gaps[0].reason,
            "4 lines left out, the first in line 3: N is 0 or negative: without clients there is \
             no load"
        );
        let backwards = "t,N,X,R_ms\n5,10,5,1\n4,10,5,1\n";
        assert_eq!(
            parsed(backwards).unwrap().1[0].reason,
            "1 line left out, the first in line 3: the clock does not advance: 4 after 5"
        );
        assert!(refusal("t,N,X,R_ms\n0,0,0,0\n").contains("line 2: N is 0"));
    }
}
