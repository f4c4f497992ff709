//! BenchmarkSQL's props files, and files of our own form (`*.toml`): what they say, checked.
//!
//! All keys of BenchmarkSQL 5.0 and of its MySQL forks are known. A file is read leniently in
//! form (see `text`) and strictly in content: every problem is reported, with its line, at
//! once. Deliberately absent: what is done with it.

mod own;
mod reader;
pub(crate) mod secrets;
mod text;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};

pub use url::{Engine, Url, UrlError};

use crate::spec::deck::{Mix, Weights};
use reader::Reader;

/// A props file that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Props {
    /// The file.
    pub path: PathBuf,
    /// Keys and values as they stand there, sorted, for copies into results; passwords are masked.
    pub entries: Vec<(String, String)>,
    /// Where the database is.
    pub url: Url,
    /// Whom to log in as.
    pub user: String,
    /// And with what.
    pub password: Password,
    /// The folder `sql.NAME` of replaceable statements, as `db=` says.
    pub db: String,
    /// Warehouses to load, or to run on.
    pub warehouses: u32,
    /// Connections of a load.
    pub load_workers: u32,
    /// The warehouses that this process loads, where a load is split.
    pub load_range: Option<(u32, u32)>,
    /// CSV files instead of a load.
    pub csv: Option<Csv>,
    /// What a run does; `None` in a file that has no `terminals`.
    pub run: Option<Run>,
    /// Where the server keeps its data and a copy of it.
    pub hints: Hints,
    /// Options of `saiga bench tpcc run` that a file of ours gives, as its command line has them.
    pub options: Vec<String>,
}

/// A password, which does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// What stands in its place wherever it would be seen.
    const MASK: &str = "***";

    /// The password itself, for a log-in.
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

/// CSV files instead of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// Put before the name of each file: a folder needs its slash.
    pub prefix: String,
    /// What stands for NULL.
    pub null: String,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Parallel connections.
    pub terminals: u32,
    /// When it ends.
    pub length: Length,
    /// Transactions per minute of all terminals together; `None` for as many as will go.
    pub limit_per_min: Option<u32>,
    /// Each terminal stays at its warehouse (TPC-C §2.4.1.1); else it draws one for each
    /// transaction, a deviation.
    pub fixed_warehouse: bool,
    /// The mix of transactions.
    pub mix: Mix,
    /// Where results go, with its `%tY` patterns.
    pub result_directory: Option<String>,
    /// Devices to sample, as `net_eth0` and `blk_sda`.
    pub devices: Vec<String>,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// `runMins`.
    Minutes(u32),
    /// `runTxnsPerTerminal`.
    PerTerminal(u32),
}

/// Keys of one fork that BenchmarkSQL itself does not read: hints for snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// The server's configuration file.
    pub profile: Option<PathBuf>,
    /// Its data directory.
    pub data: Option<PathBuf>,
    /// A copy of that.
    pub backup: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PropsError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// It says things that do not go together, or that nobody understands.
    #[error("{}: {}", path.display(), problems.join("; "))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// One for each problem.
        problems: Vec<String>,
    },
}

/// Keys that are read by BenchmarkSQL's scripts or its sampler and have no meaning here.
const UNUSED: [&str; 4] = [
    "driver",
    "osCollectorScript",
    "osCollectorInterval",
    "osCollectorSSHAddr",
];

impl Props {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PropsError`].
    pub fn read(path: &Path) -> Result<Self, PropsError> {
        let path = path.to_owned();
        match std::fs::read(&path) {
            Ok(bytes) => Self::parse(path, &text::of_bytes(bytes)),
            Err(error) => Err(PropsError::Unreadable { path, error }),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`PropsError::Wrong`].
    pub fn parse(path: PathBuf, text: &str) -> Result<Self, PropsError> {
        let read = if path.extension().is_some_and(|ending| ending == "toml") {
            let variable = |name: &str| std::env::var(name).ok();
            own::parse(text, variable)
                .map(|own| (Reader::of(own.entries, own::name_of), own.options))
        } else {
            let reader = Reader::new(text).map_err(|problem| vec![problem]);
            reader.map(|reader| (reader, Vec::new()))
        };
        let (mut reader, options) = match read {
            Ok(read) => read,
            Err(problems) => return Err(PropsError::Wrong { path, problems }),
        };
        let parsed = parse(&mut reader, &path);
        match (parsed, reader.finish()) {
            (Some(props), problems) if problems.is_empty() => Ok(Self { options, ..props }),
            (_, problems) => Err(PropsError::Wrong { path, problems }),
        }
    }
}

fn parse(reader: &mut Reader, path: &Path) -> Option<Props> {
    let entries = reader.entries();
    UNUSED.into_iter().for_each(|key| reader.skip(key));
    let url = reader.needed("conn").and_then(|text| reader.url(&text));
    let warehouses = reader.needed_count("warehouses", 1..=u32::MAX);
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

/// `loadidbegin` to `loadidend`, or the same by the forks' other name.
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
                reader.problem(begin, &format!("goes with {end}, and must not be above it"));
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
            "{terminals} terminals are too many: ten for each warehouse, which makes {most}; \
             load more warehouses or take fewer terminals"
        );
        reader.problem("terminals", &text);
    }
    let mix = mix(reader);
    let length = length(reader);
    // Everything is asked for, whatever is wrong: what is not asked for counts as unknown.
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

/// Without any weight the deck of the specification.
fn mix(reader: &mut Reader) -> Option<Mix> {
    // BenchmarkSQL reads it and then gives New-Order what the others leave.
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
            let text =
                format!("and the other weights make {sum}; together they may be 100 at most");
            reader.problem("newOrderWeight", &text);
            None
        }
    }
}

/// Exactly one of `runMins` and `runTxnsPerTerminal` is not zero.
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
                "and runTxnsPerTerminal are both zero or missing: one of them says when to end",
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
