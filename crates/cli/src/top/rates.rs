//! Computes rates from two samples of the processes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::process::{Process, TcpSocket};

/// A sample of every accelerated process.
pub(super) struct Sample {
    at: Instant,
    processes: Vec<Process>,
}

/// Rates per second of one process.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Rates {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) connections: usize,
    pub(super) upgraded: usize,
    pub(super) channel_rx_bytes_s: u64,
    pub(super) channel_tx_bytes_s: u64,
    pub(super) tcp_rx_bytes_s: u64,
    pub(super) tcp_tx_bytes_s: u64,
    pub(super) spins_s: u64,
    pub(super) sleeps_s: u64,
    pub(super) rings_s: u64,
}

impl Sample {
    pub(super) fn of(processes: Vec<Process>) -> Self {
        Self {
            at: Instant::now(),
            processes,
        }
    }

    /// The rates, the busiest process first. A process that is not in `before` is left out.
    pub(super) fn rates_since(&self, before: &Self) -> Vec<Rates> {
        let elapsed = self.at.saturating_duration_since(before.at);
        let mut rates: Vec<Rates> = self
            .processes
            .iter()
            .filter_map(|now| {
                let old = before.processes.iter().find(|old| old.pid == now.pid)?;
                Some(between(old, now, elapsed))
            })
            .collect();
        let traffic = |row: &Rates| {
            [
                row.channel_rx_bytes_s,
                row.channel_tx_bytes_s,
                row.tcp_rx_bytes_s,
                row.tcp_tx_bytes_s,
            ]
        };
        let total = |row: &Rates| traffic(row).into_iter().fold(0, u64::saturating_add);
        rates.sort_by_key(|row| (std::cmp::Reverse(total(row)), row.pid));
        rates
    }
}

fn between(old: &Process, now: &Process, elapsed: Duration) -> Rates {
    let known: HashMap<_, _> = old
        .sockets
        .iter()
        .map(|socket| ((socket.fd, socket.generation), socket))
        .collect();
    // A new connection on a reused descriptor number started from zero.
    let moved = |count: fn(&TcpSocket) -> u64| {
        let one = |socket: &TcpSocket| {
            let was = known
                .get(&(socket.fd, socket.generation))
                .map_or(0, |old| count(old));
            count(socket).saturating_sub(was)
        };
        per_second(
            now.sockets.iter().map(one).fold(0, u64::saturating_add),
            elapsed,
        )
    };
    let counted =
        |count: fn(&Process) -> u64| per_second(count(now).saturating_sub(count(old)), elapsed);
    Rates {
        pid: now.pid,
        program: now.program.clone(),
        connections: now.connections(),
        upgraded: now.upgraded(),
        channel_rx_bytes_s: moved(|socket| socket.channel_rx),
        channel_tx_bytes_s: moved(|socket| socket.channel_tx),
        tcp_rx_bytes_s: moved(|socket| socket.tcp_rx),
        tcp_tx_bytes_s: moved(|socket| socket.tcp_tx),
        spins_s: counted(|process| process.spins),
        sleeps_s: counted(|process| process.sleeps),
        rings_s: counted(|process| process.rings),
    }
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    let ms = elapsed.as_millis().max(1);
    u64::try_from(u128::from(count) * 1000 / ms).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(fd: u32, generation: u32, channel_rx: u64) -> TcpSocket {
        TcpSocket {
            fd,
            local: None,
            remote: None,
            state: "upgraded",
            reason: "none",
            meaning: "",
            tcp_rx: 0,
            tcp_tx: 0,
            channel_rx,
            channel_tx: 0,
            peer_pid: None,
            generation,
        }
    }

    fn process(pid: u32, spins: u64, sockets: Vec<TcpSocket>) -> Process {
        Process {
            pid,
            program: "p".to_owned(),
            enabled: true,
            disabled: None,
            upgrades: 0,
            downgrades: 0,
            resets: 0,
            spins,
            sleeps: 0,
            rings: 0,
            wake_cost_us: None,
            segments: 0,
            channels: 0,
            not_upgraded: Vec::new(),
            taken_back: Vec::new(),
            reset_for: Vec::new(),
            sockets,
        }
    }

    #[test]
    fn rates_are_per_connection_not_per_descriptor() {
        let before = Sample::of(vec![
            process(1, 10, vec![socket(5, 1, 1000), socket(6, 1, 900)]),
            process(2, 0, vec![]),
        ]);
        // Descriptor 5 is the same connection, 6 is another one, and process 3 is new.
        let sockets = vec![socket(5, 1, 3000), socket(6, 2, 400)];
        let mut now = Sample::of(vec![
            process(2, 8, vec![]),
            process(1, 10, sockets),
            process(3, 9, vec![]),
        ]);
        now.at = before.at + Duration::from_secs(2);
        let rates = now.rates_since(&before);
        let shown: Vec<_> = rates
            .iter()
            .map(|r| (r.pid, r.channel_rx_bytes_s, r.spins_s))
            .collect();
        assert_eq!(shown, [(1, 1200, 0), (2, 0, 4)]);
    }
}
