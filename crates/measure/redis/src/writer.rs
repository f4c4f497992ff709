//! Clients that write through a fail-over and afterwards look for what they wrote.
//!
//! Each connection asks the sentinels for the master, then SETs one key after the other,
//! each once: an acknowledged key must be found in the end. A write that was not answered
//! is not acknowledged, whatever became of it. Without service is the longest time in
//! which no connection got an acknowledgement.
//!
//! It runs as a process of its own, so that it can be dressed as the servers are.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::configuration::MASTER_NAME;
use crate::resp::Control;

/// A server that does not answer a write within this time is down for us.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// Between two attempts to find a master.
const SEARCH_PAUSE: Duration = Duration::from_millis(5);
/// Writing goes on for so long with the new master.
const SETTLE: Duration = Duration::from_millis(500);
/// Keys looked for at once.
const CHECK_BATCH: usize = 500;

/// What to write to, and for how long.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Ports of the sentinels on 127.0.0.1.
    pub sentinels: Vec<u16>,
    /// Connections that write.
    pub connections: u32,
    /// Size of a value.
    pub value_bytes: usize,
    /// Writing ends by then, whether a new master was found or not.
    pub limit: Duration,
}

/// What became of the writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// Writes that were answered by OK.
    pub acknowledged: u64,
    /// Those that the last master does not have.
    pub lost: u64,
    /// The longest time without an acknowledgement.
    pub without_service_s: f64,
    /// Whether a second master was written to.
    pub switched: bool,
    /// Seconds until the last write, after which only the check for what was lost remained.
    pub wrote_s: f64,
}

/// Why there is no account.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// No master answered in the end.
    #[error("no master can be asked for what was written: {0}")]
    Unreachable(#[from] io::Error),
}

/// What the connections tell each other.
struct Shared {
    began: Instant,
    last_ack_us: AtomicU64,
    longest_us: AtomicU64,
    /// The first master, and when another one acknowledged its first write.
    first_port: AtomicU16,
    switched_us: AtomicU64,
    over: AtomicBool,
}

/// Writes until a fail-over is over, then looks for everything acknowledged.
///
/// # Errors
/// [`WriterError`].
pub fn write(orders: &Orders) -> Result<Account, WriterError> {
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
        let start = |name| scope.spawn(move || write_one(orders, name, shared));
        let writers: Vec<_> = (0..orders.connections).map(start).collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_default())
            .collect()
    });
    let wrote_s = shared.began.elapsed().as_secs_f64();
    let mut lost = 0;
    for (name, keys) in (0..).zip(&acknowledged) {
        lost += missing(orders, name, keys)?;
    }
    Ok(Account {
        acknowledged: acknowledged.iter().map(|keys| count(keys)).sum(),
        lost,
        without_service_s: seconds(shared.longest_us.load(Ordering::Relaxed)),
        switched: shared.switched_us.load(Ordering::Relaxed) > 0,
        wrote_s,
    })
}

impl Account {
    /// One line for whoever started the writer.
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

    /// Reads that line; `None` for anything else.
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

/// One connection after the other, until it is over; the numbers of acknowledged keys.
fn write_one(orders: &Orders, name: u32, shared: &Shared) -> Vec<u64> {
    let value = vec![b'x'; orders.value_bytes];
    let (mut acknowledged, mut next) = (Vec::new(), 0);
    while !shared.is_over(orders.limit) {
        let Ok((port, mut master)) = find_master(orders) else {
            thread::sleep(SEARCH_PAUSE);
            continue;
        };
        while !shared.is_over(orders.limit) {
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

    /// Notes an acknowledgement by the master at `port`.
    fn acknowledge(&self, port: u16) {
        let now = self.now_us();
        let before = self.last_ack_us.fetch_max(now, Ordering::Relaxed);
        // Before the first one there was no service to lose.
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
            // Whoever comes later finds it set.
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

/// The master that the first sentinel names which answers.
fn find_master(orders: &Orders) -> io::Result<(u16, Control)> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for &sentinel in &orders.sentinels {
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

/// How many of `keys` the master of now does not have.
fn missing(orders: &Orders, name: u32, keys: &[u64]) -> io::Result<u64> {
    let (_, mut master) = find_master(orders)?;
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
    fn an_account_survives_its_line() {
        let account = Account {
            acknowledged: 41_234,
            lost: 7,
            without_service_s: 2.25,
            switched: true,
            wrote_s: 3.5,
        };
        assert_eq!(Account::from_json(&account.to_json()), Some(account));
        assert_eq!(Account::from_json("saiga: no master"), None);
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
