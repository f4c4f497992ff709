//! Parses and validates BenchmarkSQL's props files, and Saiga's own form of them (`*.toml`).
//!
//! All keys of BenchmarkSQL 5.0 and of its MySQL forks are known. Parsing is lenient (see `text`).
//! Validation is strict: all problems of a file are reported at once, each with its line.
//! Deliberately absent: the use of the values.

mod reader;
pub(crate) mod secrets;
mod text;
mod toml_form;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};

pub use url::{Engine, Url, UrlError};

use crate::spec::deck::{Mix, Weights};
use reader::Reader;

/// A valid props file.
#[derive(Debug, Clone, PartialEq)]
pub struct Props {
    pub path: PathBuf,
    /// Keys and values as written, sorted, for copies in results. Passwords are masked.
    pub entries: Vec<(String, String)>,
    pub url: Url,
    pub user: String,
    pub password: Password,
    /// The database system (`db=`), which selects the folder of the SQL scripts: `sql.NAME`.
    pub db: String,
    /// Warehouses to load, or to use in a run.
    pub warehouses: u32,
    /// Number of sessions of a load.
    pub load_workers: u32,
    /// First and last warehouse that this process loads, if the load is divided.
    pub load_range: Option<(u32, u32)>,
    /// Set if a build writes CSV files instead of loading a database.
    pub csv: Option<Csv>,
    /// Settings of a run; `None` in a file without `terminals`.
    pub run: Option<Run>,
    /// The server's data directory and a copy of it.
    pub hints: Hints,
    /// Options of `saiga bench tpcc run` from a TOML file, as written on the command line.
    pub options: Vec<String>,
}

/// A password. Its `Debug` output is a mask.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Replaces passwords in all output.
    const MASK: &str = "***";

    #[must_use]
    pub fn new(password: String) -> Self {
        Self(password)
    }

    /// The password itself, to log in with.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MASK)
    }
}

/// Parameters of the CSV files that a build writes instead of loading a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// Prefix of the file names; a folder needs its final slash.
    pub prefix: String,
    /// The text that represents NULL.
    pub null: String,
}

/// Settings of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub terminals: u32,
    pub length: Length,
    /// Limit in transactions per minute of all terminals together; `None` for no limit.
    pub limit_per_min: Option<u32>,
    /// Whether each terminal stays at its home warehouse (TPC-C §2.4.1.1). Otherwise it draws a
    /// warehouse for each transaction, which deviates from the specification.
    pub fixed_warehouse: bool,
    pub mix: Mix,
    /// Directory of the results, with `%tY` patterns.
    pub result_directory: Option<String>,
    /// Devices to sample, such as `net_eth0` and `blk_sda`.
    pub devices: Vec<String>,
}

/// The condition that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After this many minutes (`runMins`).
    Minutes(u32),
    /// After this many transactions of each terminal (`runTxnsPerTerminal`).
    PerTerminal(u32),
}

/// Paths of the server's files, from keys that only one fork of BenchmarkSQL reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// The server's configuration file (`profile`).
    pub profile: Option<PathBuf>,
    /// The server's data directory (`data`).
    pub data: Option<PathBuf>,
    /// A copy of the data directory (`backup`).
    pub backup: Option<PathBuf>,
}

/// A file that cannot be read, or is not valid.
#[derive(Debug, thiserror::Error)]
pub enum PropsError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{}: {}", path.display(), problems.join("; "))]
    Invalid {
        path: PathBuf,
        /// One message per problem.
        problems: Vec<String>,
    },
}

/// Keys of BenchmarkSQL's scripts and its sampler, which are accepted and ignored.
const UNUSED: [&str; 4] = [
    "driver",
    "osCollectorScript",
    "osCollectorInterval",
    "osCollectorSSHAddr",
];

impl Props {
    /// Reads and validates a file.
    pub fn read(path: &Path) -> Result<Self, PropsError> {
        let path = path.to_owned();
        match std::fs::read(&path) {
            Ok(bytes) => Self::parse(path, &text::of_bytes(bytes)),
            Err(error) => Err(PropsError::Unreadable { path, error }),
        }
    }

    /// Validates the text of a file; `path` selects the format and appears in messages.
    pub fn parse(path: PathBuf, text: &str) -> Result<Self, PropsError> {
        let read = if path.extension().is_some_and(|ending| ending == "toml") {
            let variable = |name: &str| std::env::var(name).ok();
            toml_form::parse(text, variable)
                .map(|form| (Reader::of(form.entries, toml_form::name_of), form.options))
        } else {
            let reader = Reader::new(text).map_err(|problem| vec![problem]);
            reader.map(|reader| (reader, Vec::new()))
        };
        let (mut reader, options) = match read {
            Ok(read) => read,
            Err(problems) => return Err(PropsError::Invalid { path, problems }),
        };
        let parsed = parse(&mut reader, &path);
        match (parsed, reader.finish()) {
            (Some(props), problems) if problems.is_empty() => Ok(Self { options, ..props }),
            (_, problems) => Err(PropsError::Invalid { path, problems }),
        }
    }
}

fn parse(reader: &mut Reader, path: &Path) -> Option<Props> {
    let entries = reader.entries();
    UNUSED.into_iter().for_each(|key| reader.skip(key));
    let url = reader.required("conn").and_then(|text| reader.url(&text));
    let warehouses = reader.required_count("warehouses", 1..=u32::MAX);
    let (user, password) = (reader.text("user"), reader.text("password").map(Password));
    let user = user.or(url.as_ref().and_then(|url| url.user.clone()));
    let password = password.or(url.as_ref().and_then(|url| url.password.clone()));
    let props = Props {
        path: path.to_owned(),
        entries,
        user: user.unwrap_or_default(),
        password: password.unwrap_or(Password(String::new())),
        db: reader
            .text("db")
            .unwrap_or_else(|| url.as_ref().map_or("", |url| url.engine.name()).to_owned()),
        load_workers: reader.count("loadWorkers", 1..=10_000).unwrap_or(4),
        load_range: load_range(reader),
        csv: csv(reader),
        hints: Hints {
            profile: reader.text("profile").map(PathBuf::from),
            data: reader.text("data").map(PathBuf::from),
            backup: reader.text("backup").map(PathBuf::from),
        },
        run: run(reader, warehouses),
        options: Vec::new(),
        url: url?,
        warehouses: warehouses?,
    };
    Some(props)
}

/// The values of `loadidbegin` and `loadidend`, or of the forks' names for these keys.
fn load_range(reader: &mut Reader) -> Option<(u32, u32)> {
    let mut named = |begin, end| {
        let range = (
            reader.count(begin, 1..=u32::MAX),
            reader.count(end, 1..=u32::MAX),
        );
        match range {
            (None, None) => None,
            (Some(first), Some(last)) if first <= last => Some((first, last)),
            _ => {
                reader.problem(begin, &format!("requires {end}, which must not be less"));
                None
            }
        }
    };
    let first = named("loadidbegin", "loadidend");
    named("warehouseidbegin", "warehouseidend").or(first)
}

fn csv(reader: &mut Reader) -> Option<Csv> {
    let null = reader
        .text("csvNullValue")
        .unwrap_or_else(|| "NULL".to_owned());
    let prefix = reader
        .text("fileLocation")
        .filter(|prefix| !prefix.is_empty())?;
    Some(Csv { prefix, null })
}

fn run(reader: &mut Reader, warehouses: Option<u32>) -> Option<Run> {
    let most = warehouses.map_or(u32::MAX, |w| w.saturating_mul(10));
    let terminals = reader.count("terminals", 1..=u32::MAX);
    if let Some(terminals) = terminals.filter(|terminals| *terminals > most) {
        let text = format!(
            "{terminals} terminals are too many: the limit is ten for each warehouse, {most} in all; \
             load more warehouses or use fewer terminals"
        );
        reader.problem("terminals", &text);
    }
    let mix = mix(reader);
    let length = length(reader);
    // All keys are read even after a problem, because keys that were not read count as unknown.
    let limit_per_min = reader.count("limitTxnsPerMin", 0..=u32::MAX);
    let fixed_warehouse = reader.flag("terminalWarehouseFixed").unwrap_or(true);
    let result_directory = reader.text("resultDirectory");
    let devices = reader.text("osCollectorDevices").unwrap_or_default();
    Some(Run {
        terminals: terminals?,
        length: length?,
        limit_per_min: limit_per_min.filter(|n| *n > 0),
        fixed_warehouse,
        mix: mix?,
        result_directory: result_directory.filter(|dir| !dir.is_empty()),
        devices: devices.split_whitespace().map(str::to_owned).collect(),
    })
}

/// The mix. If no weight is given, it is the deck of the specification.
fn mix(reader: &mut Reader) -> Option<Mix> {
    // BenchmarkSQL reads this weight, but New-Order gets the rest of the other weights.
    let new_order = reader.count("newOrderWeight", 0..=100);
    let mut weight = |key| reader.count(key, 0..=100);
    let (payment, order_status) = (weight("paymentWeight"), weight("orderStatusWeight"));
    let (delivery, stock_level) = (weight("deliveryWeight"), weight("stockLevelWeight"));
    let others = [payment, order_status, delivery, stock_level];
    if new_order.is_none() && others.iter().all(Option::is_none) {
        return Some(Mix::SPECIFIED);
    }
    let weights = Weights {
        payment: payment.unwrap_or(0),
        order_status: order_status.unwrap_or(0),
        delivery: delivery.unwrap_or(0),
        stock_level: stock_level.unwrap_or(0),
    };
    let given = new_order.unwrap_or(0);
    match Mix::from_weights(weights) {
        Ok(mix) if f64::from(given) <= mix.share(crate::spec::deck::Kind::NewOrder) => Some(mix),
        Ok(_) | Err(_) => {
            let sum = others.into_iter().flatten().sum::<u32>() + given;
            let text = format!("and the other weights add up to {sum}; reduce them to at most 100");
            reader.problem("newOrderWeight", &text);
            None
        }
    }
}

/// The length: exactly one of `runMins` and `runTxnsPerTerminal` must be greater than zero.
fn length(reader: &mut Reader) -> Option<Length> {
    let minutes = reader.count("runMins", 0..=u32::MAX).unwrap_or(0);
    let transactions = reader
        .count("runTxnsPerTerminal", 0..=u32::MAX)
        .unwrap_or(0);
    match (minutes, transactions) {
        (0, 0) if !reader.has("terminals") => None,
        (0, 0) => {
            reader.problem(
                "runMins",
                "and runTxnsPerTerminal are both zero or missing: one of them must be set",
            );
            None
        }
        (minutes, 0) => Some(Length::Minutes(minutes)),
        (0, transactions) => Some(Length::PerTerminal(transactions)),
        _ => {
            reader.problem(
                "runMins",
                "and runTxnsPerTerminal are both given: set one of them to 0",
            );
            None
        }
    }
}

#[cfg(test)]
mod tests;
