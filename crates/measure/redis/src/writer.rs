//! Clients that write during a fail-over and then check that their writes were kept.
//!
//! Each connection gets the master from the sentinels, then SETs one new key after the other. An
//! acknowledged key must exist in the end; a write without an answer does not count. The time
//! without service is the longest time in which no connection got an acknowledgement.
//!
//! The writer is a separate process, so that it can have the environment of the servers.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::configuration::MASTER_NAME;
use crate::resp::Control;

/// Timeout of a write; then the server counts as down.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// Interval between two attempts to find a master.
const SEARCH_PAUSE: Duration = Duration::from_millis(5);
/// Time of writing to the new master.
const SETTLE: Duration = Duration::from_millis(500);
/// Number of keys per check.
const CHECK_BATCH: usize = 500;

/// Options of the writer.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    pub sentinels: Vec<u16>,
    /// Number of writing connections.
    pub connections: u32,
    pub value_bytes: usize,
    /// Timeout: writing ends even if no new master was found.
    pub limit: Duration,
}

/// The result of the writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteReport {
    /// Writes with the answer OK.
    pub acknowledged: u64,
    /// Acknowledged writes that the last master does not have.
    pub lost: u64,
    /// Longest time without an acknowledgement.
    pub without_service_s: f64,
    /// Whether a second master acknowledged a write.
    pub switched: bool,
    /// Seconds until the last write; the check for lost writes comes after it.
    pub wrote_s: f64,
}

/// The writes cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    #[error("no master answers, so the writes cannot be checked: {0}")]
    Unreachable(#[from] io::Error),
}

/// State that the connections share.
struct Shared {
    began: Instant,
    last_ack_us: AtomicU64,
    longest_us: AtomicU64,
    /// Port of the first master. [`switched_us`](Self::switched_us) is the time of the first
    /// acknowledgement by another master.
    first_port: AtomicU16,
    switched_us: AtomicU64,
    over: AtomicBool,
}

/// Writes until a fail-over has completed, then counts the acknowledged writes that are missing.
///
/// # Errors
/// Fails if no master answers at the end.
pub fn write(options: &WriterOptions) -> Result<WriteReport, WriterError> {
    let shared = Shared {
        began: Instant::now(),
        last_ack_us: AtomicU64::new(0),
        longest_us: AtomicU64::new(0),
        first_port: AtomicU16::new(0),
        switched_us: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    let acknowledged: Vec<Vec<u64>> = thread::scope(|scope| {
        let shared = &shared;
        let start = |name| scope.spawn(move || write_one(options, name, shared));
        let writers: Vec<_> = (0..options.connections).map(start).collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_default())
            .collect()
    });
    let wrote_s = shared.began.elapsed().as_secs_f64();
    let mut lost = 0;
    for (name, keys) in (0..).zip(&acknowledged) {
        lost += missing(options, name, keys)?;
    }
    Ok(WriteReport {
        acknowledged: acknowledged.iter().map(|keys| count(keys)).sum(),
        lost,
        without_service_s: seconds(shared.longest_us.load(Ordering::Relaxed)),
        switched: shared.switched_us.load(Ordering::Relaxed) > 0,
        wrote_s,
    })
}

impl WriteReport {
    /// Encodes the report as a line for the parent process.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self {
            acknowledged,
            lost,
            without_service_s,
            switched,
            wrote_s,
        } = self;
        json!({
            "acknowledged": acknowledged,
            "lost": lost,
            "without_service_s": without_service_s,
            "switched": switched,
            "wrote_s": wrote_s,
        })
        .to_string()
    }

    /// Decodes that line; `None` for other text.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(text.trim()).ok()?;
        Some(Self {
            acknowledged: value.get("acknowledged")?.as_u64()?,
            lost: value.get("lost")?.as_u64()?,
            without_service_s: value.get("without_service_s")?.as_f64()?,
            switched: value.get("switched")?.as_bool()?,
            wrote_s: value.get("wrote_s")?.as_f64()?,
        })
    }
}

/// Writes on one connection at a time until the end; returns the numbers of acknowledged keys.
#[expect(
    clippy::disallowed_methods,
    reason = "no event tells that a master was promoted"
)]
fn write_one(options: &WriterOptions, name: u32, shared: &Shared) -> Vec<u64> {
    let value = vec![b'x'; options.value_bytes];
    let (mut acknowledged, mut next) = (Vec::new(), 0);
    while !shared.is_over(options.limit) {
        let Ok((port, mut master)) = find_master(options) else {
            thread::sleep(SEARCH_PAUSE);
            continue;
        };
        while !shared.is_over(options.limit) {
            let key = next;
            next += 1;
            match master.ask(&[b"SET", key_name(name, key).as_bytes(), &value]) {
                Ok(_) => acknowledged.push(key),
                Err(_) => break,
            }
            shared.acknowledge(port);
        }
        thread::sleep(SEARCH_PAUSE);
    }
    acknowledged
}

impl Shared {
    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records an acknowledgement by the master at `port`.
    fn acknowledge(&self, port: u16) {
        let now = self.now_us();
        let before = self.last_ack_us.fetch_max(now, Ordering::Relaxed);
        // The time before the first acknowledgement does not count.
        if before > 0 {
            let gap = now.saturating_sub(before);
            self.longest_us.fetch_max(gap, Ordering::Relaxed);
        }
        let (none, order) = (0, Ordering::Relaxed);
        let first = match self.first_port.compare_exchange(none, port, order, order) {
            Ok(_) => port,
            Err(first) => first,
        };
        if first != port {
            // Only the first exchange succeeds; later ones leave the value.
            let _ = self.switched_us.compare_exchange(0, now, order, order);
        }
    }

    fn is_over(&self, limit: Duration) -> bool {
        let switched = self.switched_us.load(Ordering::Relaxed);
        let settled = switched > 0
            && self.now_us() > switched + u64::try_from(SETTLE.as_micros()).unwrap_or(0);
        if settled || self.began.elapsed() > limit {
            self.over.store(true, Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }
}

/// Connects to the master that the first answering sentinel names.
fn find_master(options: &WriterOptions) -> io::Result<(u16, Control)> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for &sentinel in &options.sentinels {
        match ask_sentinel(sentinel) {
            Ok(port) => return Ok((port, Control::to_port(port, ANSWER_LIMIT)?)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask_sentinel(sentinel: u16) -> io::Result<u16> {
    let mut control = Control::to_port(sentinel, ANSWER_LIMIT)?;
    let name = MASTER_NAME.as_bytes();
    let address = control.list(&[b"SENTINEL", b"get-master-addr-by-name", name])?;
    let port = address.get(1).and_then(|port| port.parse().ok());
    port.ok_or_else(|| io::Error::other("the sentinel names no master"))
}

/// Number of `keys` that the current master does not have.
fn missing(options: &WriterOptions, name: u32, keys: &[u64]) -> io::Result<u64> {
    let (_, mut master) = find_master(options)?;
    let mut missing = 0;
    for batch in keys.chunks(CHECK_BATCH) {
        let names: Vec<String> = batch.iter().map(|key| key_name(name, *key)).collect();
        let mut command: Vec<&[u8]> = vec![b"EXISTS"];
        command.extend(names.iter().map(String::as_bytes));
        let found: u64 = master
            .ask(&command)?
            .parse()
            .map_err(|_| io::ErrorKind::InvalidData)?;
        missing += count(batch).saturating_sub(found);
    }
    Ok(missing)
}

fn key_name(name: u32, key: u64) -> String {
    format!("writer:{name}:{key}")
}

fn count(keys: &[u64]) -> u64 {
    u64::try_from(keys.len()).unwrap_or(u64::MAX)
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_encoded_and_decoded() {
        let report = WriteReport {
            acknowledged: 41_234,
            lost: 7,
            without_service_s: 2.25,
            switched: true,
            wrote_s: 3.5,
        };
        assert_eq!(WriteReport::from_json(&report.to_json()), Some(report));
        assert_eq!(WriteReport::from_json("saiga: no master"), None);
    }

    #[test]
    fn the_longest_gap_is_that_of_all_connections_together() {
        let shared = Shared {
            began: Instant::now() - Duration::from_secs(9),
            last_ack_us: AtomicU64::new(8_000_000),
            longest_us: AtomicU64::new(0),
            first_port: AtomicU16::new(7000),
            switched_us: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        shared.acknowledge(7001);
        shared.acknowledge(7001);
        let longest = seconds(shared.longest_us.load(Ordering::Relaxed));
        assert!((1.0..1.5).contains(&longest), "{longest}");
        assert!(shared.switched_us.load(Ordering::Relaxed) >= 9_000_000);
        assert!(!shared.is_over(Duration::from_secs(60)));
        assert!(shared.is_over(Duration::from_secs(1)));
    }
}
