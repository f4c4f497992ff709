//! A redis-server that somebody else started: asked, emptied, filled; and what
//! redis-benchmark said of it.
//!
//! Deliberately absent: starting and stopping it, and any address but 127.0.0.1.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::benchmark::Row;
use crate::fill;
use crate::resp::Control;
use crate::server::Info;

/// Emptying a large server takes a second or two.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// One that is asked whether it is there answers at once.
const PING_LIMIT: Duration = Duration::from_secs(2);

/// A server by its port on 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    port: u16,
}

/// Keys that GETs found and missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookups {
    /// `keyspace_hits`.
    pub found: u64,
    /// `keyspace_misses`.
    pub missed: u64,
}

/// What `redis-benchmark --csv` said of its one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Latencies as in `result.json`.
    pub latencies: BTreeMap<String, f64>,
}

impl Remote {
    /// The server that listens there.
    #[must_use]
    pub fn at(port: u16) -> Self {
        Self { port }
    }

    /// Whether it answers, and not by an error as it does while it loads its data.
    ///
    /// # Errors
    /// What it said, or that nobody answers.
    pub fn ping(self) -> io::Result<()> {
        let mut control = Control::to_port(self.port, PING_LIMIT)?;
        control.ask(&[b"PING"]).map(drop)
    }

    /// Removes every key.
    ///
    /// # Errors
    /// What it said, or that nobody answers.
    pub fn flush(self) -> io::Result<()> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        control.ask(&[b"FLUSHALL"]).map(drop)
    }

    /// Makes the `keys` keys that `redis-benchmark -r` asks for; 0 is its one key without `-r`.
    ///
    /// # Errors
    /// What it said, or that nobody answers.
    pub fn fill(self, keys: u32, value_bytes: u32) -> io::Result<()> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        fill::fill_one(&mut control, "key:", keys, value_bytes)
    }

    /// Its settings by name.
    ///
    /// # Errors
    /// What it said, or that nobody answers.
    pub fn settings(self) -> io::Result<BTreeMap<String, String>> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        let words = control.list(&[b"CONFIG", b"GET", b"*"])?;
        let pairs = words.chunks_exact(2);
        Ok(pairs
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect())
    }

    /// What was looked up since it started.
    ///
    /// # Errors
    /// What it said, or that nobody answers.
    pub fn lookups(self) -> io::Result<Lookups> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        let info = Info(control.ask(&[b"INFO", b"stats"])?);
        Ok(Lookups::of(&info))
    }
}

impl Lookups {
    /// Reads the section `stats` of INFO.
    pub(crate) fn of(info: &Info) -> Self {
        Self {
            found: info.count("keyspace_hits"),
            missed: info.count("keyspace_misses"),
        }
    }

    /// The share found since `before`; `None` when nothing was looked for.
    #[must_use]
    pub fn share_since(self, before: Self) -> Option<f64> {
        let found = self.found.saturating_sub(before.found);
        let all = found + self.missed.saturating_sub(before.missed);
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let share = found as f64 / all as f64;
        (all > 0).then_some(share)
    }
}

impl Figures {
    /// Reads the output of `redis-benchmark --csv`; `None` when a figure is missing or absurd.
    #[must_use]
    pub fn parse(csv: &str) -> Option<Self> {
        let Row {
            requests_per_s,
            latencies,
        } = Row::parse(csv)?;
        Some(Self {
            requests_per_s,
            latencies,
        })
    }
}
