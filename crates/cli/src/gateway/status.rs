//! `saiga gateway status`: what a running gateway does, and its connections.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use saiga_document::number;
use saiga_document::table::{Grid, Table};
use saiga_gateway::control::{Connection, Status, Tcp, Traffic, Worker};
use serde::Serialize;

use super::target::{self, Target};
use crate::print::{print_json, print_text};

/// Options of `saiga gateway status`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Counts are those since the start of the gateway. Only root and the gateway's own \
user may ask.\nExit status: 2 when no gateway answers."
)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// List the connections, too
    #[arg(long)]
    connections: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Vec<Connection>>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.target.socket()?;
    let status = target::status(&socket)?;
    let connections = args
        .connections
        .then(|| target::connections(&socket, &status))
        .transpose()?;
    if args.json {
        print_json(&Shown {
            status: &status,
            connections,
        })?;
    } else {
        let mut text = described(&status);
        if let Some(connections) = connections {
            text += &format!("\n{}", table(&connections));
        }
        print_text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn described(status: &Status) -> String {
    let Status {
        version,
        pid,
        served,
        workers,
        silent_workers,
    } = status;
    let served: Vec<String> = served.iter().map(ToString::to_string).collect();
    let served = match served.join(", ") {
        none if none.is_empty() => "no address: the device has none".to_owned(),
        some => some,
    };
    let mut text = format!("gateway {version}, process {pid}\nserving {served}\n");
    for worker in workers {
        text += &described_worker(worker);
    }
    for worker in silent_workers {
        text += &format!("\nworker {worker} does not answer\n");
    }
    text
}

fn described_worker(worker: &Worker) -> String {
    let uptime = Duration::from_micros(worker.uptime_us.max(1));
    let busy = Duration::from_micros(worker.busy_us).div_duration_f64(uptime);
    let all: u64 = worker.connections.values().sum();
    let mut text = format!(
        "\nworker {}: up {}, busy {}, {}, {} with an anchor, {} in rings\n",
        worker.worker,
        number::time(uptime),
        number::percent(busy),
        number::counted(all, "connection"),
        worker.conversations,
        number::bytes(worker.ring_bytes)
    );
    text += &devices(worker);
    text += &latencies(worker);
    text += &counts("connections", &worker.connections);
    text += &counts("tcp", &worker.tcp);
    text += &counts("stack", &worker.stack);
    text += &counts("malformed", &worker.malformed);
    text
}

fn devices(worker: &Worker) -> String {
    let mut table = Table::new([
        "device",
        "queue",
        "frames in",
        "bytes in",
        "per batch",
        "frames out",
        "bytes out",
        "per batch",
        "dropped",
    ]);
    for device in &worker.devices {
        let (received, sent) = (device.received, device.sent);
        table.row([
            device.name.clone(),
            device.queue.to_string(),
            received.frames.to_string(),
            number::bytes(received.bytes),
            per_batch(received),
            sent.frames.to_string(),
            number::bytes(sent.bytes),
            per_batch(sent),
            drops(&device.drops),
        ]);
    }
    table.to_string()
}

/// Quantiles of the times that bytes take; nothing before there are any.
fn latencies(worker: &Worker) -> String {
    if worker.latency.values().all(|times| times.count == 0) {
        return String::new();
    }
    let mut table = Table::new([
        "latency", "p50", "p90", "p99", "p99.9", "p99.99", "max", "count",
    ]);
    for (part, times) in &worker.latency {
        table.row([
            part.replace('_', " "),
            time(times.p50_us),
            time(times.p90_us),
            time(times.p99_us),
            time(times.p999_us),
            time(times.p9999_us),
            time(times.max_us),
            times.count.to_string(),
        ]);
    }
    table.to_string()
}

fn time(micros: u64) -> String {
    number::seconds(Duration::from_micros(micros).as_secs_f64())
}

/// The mean number of frames in a batch.
fn per_batch(traffic: Traffic) -> String {
    match traffic.batches {
        0 => "-".to_owned(),
        batches => (traffic.frames / batches).to_string(),
    }
}

/// Dropped frames with their reasons.
fn drops(drops: &BTreeMap<String, u64>) -> String {
    let dropped = drops.iter().filter(|(_, count)| **count > 0);
    let shown: Vec<String> = dropped
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    if shown.is_empty() {
        "0".to_owned()
    } else {
        shown.join(", ")
    }
}

/// A line with the counts that are not zero; nothing if there are none.
fn counts(what: &str, counts: &BTreeMap<String, u64>) -> String {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    let shown: Vec<String> = counted
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if shown.is_empty() {
        String::new()
    } else {
        format!("{what}: {}\n", shown.join(", "))
    }
}

/// Columns for the numbers of TCP.
const TCP: [&str; 10] = [
    "cwnd",
    "ssthresh",
    "srtt",
    "rttvar",
    "rto",
    "snd_wnd",
    "rcv_wnd",
    "in flight",
    "retrans",
    "mss",
];

fn table(connections: &[Connection]) -> String {
    let header = [
        "client", "server", "worker", "state", "anchor", "ring in", "ring out",
    ];
    let mut table = Grid::new(header.iter().chain(&TCP).map(ToString::to_string).collect());
    for one in connections {
        let identity = [
            one.remote.to_string(),
            one.local.to_string(),
            one.worker.to_string(),
            one.state.clone(),
        ];
        let tcp = one.tcp.as_ref();
        let tcp = tcp.map_or_else(|| TCP.map(|_| absent()), tcp_cells);
        table.row([&identity[..], &anchor(one), &tcp].concat());
    }
    table.to_string()
}

fn absent() -> String {
    "-".to_owned()
}

/// The state of the connection to the server, and the bytes in both rings.
fn anchor(one: &Connection) -> [String; 3] {
    let Some(anchor) = &one.anchor else {
        return [(); 3].map(|()| absent());
    };
    let state = if anchor.is_accepted {
        "accepted"
    } else {
        "waiting"
    };
    [
        state.to_owned(),
        number::bytes(anchor.inbound_bytes),
        number::bytes(anchor.outbound_bytes),
    ]
}

/// The numbers of TCP, under [`TCP`].
fn tcp_cells(tcp: &Tcp) -> [String; TCP.len()] {
    let optional = |micros: Option<u64>| micros.map_or_else(absent, time);
    [
        tcp.cwnd_bytes.to_string(),
        tcp.ssthresh_bytes
            .map_or_else(absent, |bytes| bytes.to_string()),
        optional(tcp.srtt_us),
        optional(tcp.rttvar_us),
        time(tcp.rto_us),
        tcp.snd_wnd_bytes.to_string(),
        tcp.rcv_wnd_bytes.to_string(),
        tcp.in_flight_bytes.to_string(),
        tcp.retransmitted_segments.to_string(),
        tcp.mss_bytes.to_string(),
    ]
}
