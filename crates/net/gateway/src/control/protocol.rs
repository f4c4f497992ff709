//! The messages of the control socket: lines of JSON.
//!
//! A client sends one [`Question`] and reads one [`Answer`]. A capture has three answers: the first
//! asks for a file, which comes as a descriptor (SCM_RIGHTS); the second comes when the capture has
//! begun, the last when it has ended, which the client can ask for by the end of its stream. Both
//! sides are of one installation, so the messages have no version; unknown fields of a question are
//! refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The state of the gateway.
    Status,
    /// Some connections of a worker.
    Connections {
        /// Number of the worker, from 0.
        worker: u32,
        /// Where the list goes on: 0, then [`Connections::next`].
        from: u32,
    },
    /// A capture of the frames of all devices.
    Capture {
        /// A filter in the language of pcap-filter(7); empty for all frames.
        filter: String,
    },
}

/// What the gateway answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Question::Status`].
    Status(Status),
    /// To [`Question::Connections`].
    Connections(Connections),
    /// To [`Question::Capture`]: the client must send an empty file, open for writing.
    File,
    /// To [`Question::Capture`]: the capture has begun.
    Capturing,
    /// To [`Question::Capture`]: the capture has ended.
    Captured(Captured),
    /// The reason why there is no answer.
    Refused(String),
}

/// The state of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// The served addresses and ports.
    pub served: Vec<SocketAddr>,
    /// The workers that have answered.
    pub workers: Vec<Worker>,
    /// Numbers of the workers that have not answered.
    pub silent_workers: Vec<u32>,
}

/// The counts of a worker since its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its number, from 0.
    pub worker: u32,
    /// Time since its start.
    pub uptime_us: u64,
    /// The part of this time that was spent in turns with work.
    pub busy_us: u64,
    /// Turns with work.
    pub busy_turns: u64,
    /// Connections by state, as RFC 9293 names them. `UNDECIDED`: the server's kernel has not
    /// accepted or refused the connection yet.
    pub connections: BTreeMap<String, u64>,
    /// Connections with an anchor.
    pub conversations: u32,
    /// Memory in the rings of connections.
    pub ring_bytes: u64,
    /// Its devices.
    pub devices: Vec<Device>,
    /// How long bytes take through the worker: `device_to_ring`, `ring_to_server`,
    /// `server_to_ring` and `ring_to_device`.
    pub latency: BTreeMap<String, Latency>,
    /// Counts of the stack below TCP.
    pub stack: BTreeMap<String, u64>,
    /// Malformed packets by reason, where there were any.
    pub malformed: BTreeMap<String, u64>,
    /// Counts of TCP under their names in SNMP, as nstat(8) has them without the prefix.
    pub tcp: BTreeMap<String, u64>,
}

/// Times of one part of the way through a worker, since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of times.
    pub count: u64,
    /// Their sum.
    pub sum_us: u64,
    /// Half of the times are at most as long.
    pub p50_us: u64,
    /// 90 % of the times.
    pub p90_us: u64,
    /// 99 % of the times.
    pub p99_us: u64,
    /// 99.9 % of the times.
    pub p999_us: u64,
    /// 99.99 % of the times.
    pub p9999_us: u64,
    /// The longest time.
    pub max_us: u64,
    /// How many times are at most as long as each of [`BOUNDS_US`] and longer than the one before
    /// it; the last number is that of longer ones.
    pub buckets: Vec<u64>,
}

/// The bounds of [`Latency::buckets`], in microseconds.
pub const BOUNDS_US: [u64; 14] = [
    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 1_000_000,
];

/// The counts of a queue of a device since it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Name of the network interface.
    pub name: String,
    /// The queue, from 0.
    pub queue: u16,
    /// Frames from the device.
    pub received: Traffic,
    /// Frames to the device.
    pub sent: Traffic,
    /// Dropped frames by reason.
    pub drops: BTreeMap<String, u64>,
}

/// Frames in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Frames; a super-segment is one.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Batches: calls that moved at least one frame.
    pub batches: u64,
}

/// Some connections of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The connections, at most a thousand.
    pub connections: Vec<Connection>,
    /// Where the list goes on; `None` at its end.
    pub next: Option<u32>,
}

/// A connection of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Number of the worker.
    pub worker: u32,
    /// Address and port of the server.
    pub local: SocketAddr,
    /// Address and port of the client.
    pub remote: SocketAddr,
    /// The state, as RFC 9293 names it, or `UNDECIDED`.
    pub state: String,
    /// The connection to the server; `None` before it is asked and after it has ended.
    pub anchor: Option<Anchor>,
    /// The numbers of TCP, in the states from ESTABLISHED on.
    pub tcp: Option<Tcp>,
}

/// The connection to the server, and the rings in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Whether the server's kernel has accepted; if not, the connection waits for room in the
    /// server's backlog.
    pub is_accepted: bool,
    /// Bytes of the client that the server's kernel has not taken.
    pub inbound_bytes: u32,
    /// Bytes of the server that the client has not acknowledged.
    pub outbound_bytes: u32,
    /// Bytes that each ring can hold.
    pub ring_bytes: u32,
}

/// Numbers of TCP (`man 7 tcp`: TCP_INFO).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Congestion window.
    pub cwnd_bytes: u32,
    /// Slow start threshold; `None` before the first reduction.
    pub ssthresh_bytes: Option<u32>,
    /// Smoothed round-trip time, after the first sample.
    pub srtt_us: Option<u64>,
    /// Mean deviation of the round-trip time, after the first sample.
    pub rttvar_us: Option<u64>,
    /// Retransmission time-out with all doublings.
    pub rto_us: u64,
    /// The window that the client has announced.
    pub snd_wnd_bytes: u32,
    /// The window that was announced to the client.
    pub rcv_wnd_bytes: u32,
    /// Bytes that are thought to be in the network.
    pub in_flight_bytes: u32,
    /// Bytes that were given up and not sent again yet.
    pub lost_bytes: u32,
    /// Segments that were sent again.
    pub retransmitted_segments: u32,
    /// Payload of a full segment.
    pub mss_bytes: u16,
}

/// What a capture has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Frames in the file.
    pub frames: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Why the capture has ended.
    pub end: End,
}

/// Why a capture has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The client has ended it.
    Client,
    /// The file has reached `capture.file_size`.
    FileSize,
    /// The gateway has ended.
    Gateway,
    /// The file could not be written, for this reason.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_one_form() {
        let capture = Question::Capture {
            filter: "arp".to_owned(),
        };
        for (question, text) in [
            (Question::Status, r#""status""#),
            (
                Question::Connections { worker: 1, from: 2 },
                r#"{"connections":{"worker":1,"from":2}}"#,
            ),
            (capture, r#"{"capture":{"filter":"arp"}}"#),
        ] {
            assert_eq!(serde_json::to_string(&question).unwrap(), text);
            assert_eq!(serde_json::from_str::<Question>(text).unwrap(), question);
        }
    }

    #[test]
    fn other_questions_are_refused() {
        for text in [
            "",
            "1",
            r#""stop""#,
            r#"{"connections":{"worker":1}}"#,
            r#"{"connections":{"worker":-1,"from":0}}"#,
            r#"{"connections":{"worker":1,"from":2,"to":3}}"#,
        ] {
            assert!(serde_json::from_str::<Question>(text).is_err(), "{text}");
        }
    }
}
