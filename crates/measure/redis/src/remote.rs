//! Commands to a redis-server that this crate did not start, and the figures of redis-benchmark.
//!
//! Deliberately absent: start and stop of the server, and addresses other than 127.0.0.1.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::benchmark::Row;
use crate::fill;
use crate::resp::Control;
use crate::server::Info;

/// Timeout of commands; FLUSHALL on a large server takes a second or two.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// Timeout of PING, which a running server answers at once.
const PING_LIMIT: Duration = Duration::from_secs(2);

/// A server, identified by its port on 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    port: u16,
}

/// Counters of key look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookups {
    /// `keyspace_hits` of INFO.
    pub found: u64,
    /// `keyspace_misses` of INFO.
    pub missed: u64,
}

/// The figures in the output of `redis-benchmark --csv` for a single test.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub requests_per_s: f64,
    /// Latencies by the metric names of `result.json`.
    pub latencies: BTreeMap<String, f64>,
}

impl Remote {
    #[must_use]
    pub fn at(port: u16) -> Self {
        Self { port }
    }

    /// Sends PING. A server that is loading its data answers with an error.
    ///
    /// # Errors
    /// Returns the server's error, or the error of the connection.
    pub fn ping(self) -> io::Result<()> {
        let mut control = Control::to_port(self.port, PING_LIMIT)?;
        control.ask(&[b"PING"]).map(drop)
    }

    /// Removes all keys by FLUSHALL.
    ///
    /// # Errors
    /// Returns the server's error, or the error of the connection.
    pub fn flush(self) -> io::Result<()> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        control.ask(&[b"FLUSHALL"]).map(drop)
    }

    /// Sets the keys of `redis-benchmark -r` with `keys` keys; 0 means its single key without `-r`.
    ///
    /// # Errors
    /// Returns the server's error, or the error of the connection.
    pub fn fill(self, keys: u32, value_bytes: u32) -> io::Result<()> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        fill::fill_one(&mut control, "key:", keys, value_bytes)
    }

    /// The settings of the server by name, from CONFIG GET.
    ///
    /// # Errors
    /// Returns the server's error, or the error of the connection.
    pub fn settings(self) -> io::Result<BTreeMap<String, String>> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        let words = control.list(&[b"CONFIG", b"GET", b"*"])?;
        let pairs = words.chunks_exact(2);
        Ok(pairs
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect())
    }

    /// The counters of key look-ups since the server started.
    ///
    /// # Errors
    /// Returns the server's error, or the error of the connection.
    pub fn lookups(self) -> io::Result<Lookups> {
        let mut control = Control::to_port(self.port, ANSWER_LIMIT)?;
        let info = Info(control.ask(&[b"INFO", b"stats"])?);
        Ok(Lookups::of(&info))
    }
}

impl Lookups {
    /// Parses the section `stats` of INFO.
    pub(crate) fn of(info: &Info) -> Self {
        Self {
            found: info.count("keyspace_hits"),
            missed: info.count("keyspace_misses"),
        }
    }

    /// The share of look-ups since `before` that found a key; `None` without look-ups.
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
    /// Parses the output of `redis-benchmark --csv`; `None` if the throughput is missing or
    /// invalid.
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
