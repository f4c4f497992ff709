//! `saiga gateway top`: the traffic of a running gateway, refreshed each second.
//!
//! On a terminal it redraws in place until q or Ctrl-C; elsewhere it prints one frame after the
//! other. Rates are the differences of two answers of the gateway, by the clocks of its workers.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use saiga_document::number;
use saiga_document::table::Table;
use saiga_gateway::control::{Device, Status, Worker};

use super::target::{self, Target};
use crate::top::screen::Screen;

/// Options of `saiga gateway top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 2 when no gateway answers, or it ends.")]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Show this many frames and exit
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.target.socket()?;
    let mut before = target::status(&socket)?;
    let mut screen = Screen::open().context("cannot read signals and keys")?;
    screen.show(args.iterations, true, || {
        let now = target::status(&socket)?;
        let text = frame(&before, &now);
        before = now;
        Ok(text)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn frame(before: &Status, now: &Status) -> String {
    let mut table = Table::new([
        "worker",
        "busy",
        "connections",
        "frames in/s",
        "bytes in/s",
        "frames out/s",
        "bytes out/s",
        "retrans/s",
        "drops/s",
        "rings",
    ]);
    for worker in &now.workers {
        let earlier = before
            .workers
            .iter()
            .find(|one| one.worker == worker.worker);
        if let Some(earlier) = earlier {
            table.row(row(earlier, worker));
        }
    }
    let mut text = table.to_string();
    for worker in &now.silent_workers {
        text += &format!("worker {worker} does not answer\n");
    }
    text
}

fn row(before: &Worker, now: &Worker) -> [String; 10] {
    let elapsed_us = now.uptime_us.saturating_sub(before.uptime_us).max(1);
    let per_second = |count: fn(&Worker) -> u64| {
        let more = u128::from(count(now).saturating_sub(count(before)));
        more * 1_000_000 / u128::from(elapsed_us)
    };
    let busy = Duration::from_micros(now.busy_us.saturating_sub(before.busy_us));
    let connections: u64 = now.connections.values().sum();
    [
        now.worker.to_string(),
        number::percent(busy.div_duration_f64(Duration::from_micros(elapsed_us))),
        connections.to_string(),
        per_second(|one| total(one, |device| device.received.frames)).to_string(),
        number::bytes(per_second(|one| total(one, |device| device.received.bytes))),
        per_second(|one| total(one, |device| device.sent.frames)).to_string(),
        number::bytes(per_second(|one| total(one, |device| device.sent.bytes))),
        per_second(retransmitted).to_string(),
        per_second(|one| total(one, |device| device.drops.values().sum())).to_string(),
        number::bytes(now.ring_bytes),
    ]
}

/// A count of all devices of a worker.
fn total(worker: &Worker, count: fn(&Device) -> u64) -> u64 {
    worker.devices.iter().map(count).sum()
}

fn retransmitted(worker: &Worker) -> u64 {
    worker.tcp.get("RetransSegs").copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saiga_gateway::control::Traffic;
    use std::collections::BTreeMap;

    fn worker(uptime_us: u64, busy_us: u64, count: u64) -> Worker {
        let traffic = Traffic {
            frames: count,
            bytes: count * 1024,
            batches: count,
        };
        let device = Device {
            name: "tap0".to_owned(),
            queue: 0,
            received: traffic,
            sent: traffic,
            drops: BTreeMap::from([("down".to_owned(), count)]),
        };
        Worker {
            worker: 0,
            uptime_us,
            busy_us,
            busy_turns: count,
            connections: BTreeMap::from([("ESTABLISHED".to_owned(), 3)]),
            conversations: 3,
            ring_bytes: 0,
            devices: vec![device.clone(), device],
            latency: BTreeMap::new(),
            stack: BTreeMap::new(),
            malformed: BTreeMap::new(),
            tcp: BTreeMap::from([("RetransSegs".to_owned(), count)]),
        }
    }

    #[test]
    fn rates_are_differences_by_the_clock_of_the_worker() {
        let cells = row(&worker(1_000_000, 0, 100), &worker(3_000_000, 500_000, 140));
        let plain = [&cells[..4], &cells[5..6], &cells[7..9]].concat();
        assert_eq!(plain, ["0", "25.0 %", "3", "40", "40", "20", "40"]);
        assert_eq!(cells[4], number::bytes(40_960_u64));
    }
}
