//! Results: what a capture says about each server.

mod mark;
mod series;
mod sketch;
mod tally;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use hdrhistogram::Histogram;

use crate::{Kind, Protocol, Timestamp, clock::Sample};
pub use mark::Mark;
pub(crate) use tally::{Answer, Budget, Sink, Tally, nanoseconds};

/// Digits of the histograms: values are exact to one percent.
const DIGITS: u8 = 2;

/// All results of one capture.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Times of the first and the last packet.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Packets of supported links, whatever they hold.
    pub packets: u64,
    /// Bytes of these packets on the network.
    pub bytes: u64,
    /// The interfaces of a pcapng file.
    pub interfaces: Vec<Interface>,
    /// Each address to which clients connected.
    pub servers: BTreeMap<SocketAddr, Server>,
    /// What is missing or doubtful; empty for a perfect capture.
    pub marks: Vec<Mark>,
    /// Packets by which another capture's clock is compared.
    pub(crate) sample: Sample,
}

/// An interface of a pcapng file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: Option<String>,
    /// `LINKTYPE_*`.
    pub link_type: u16,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the interface received, if its statistics say so.
    pub received: Option<u64>,
    /// Packets that interface and operating system dropped, if its statistics say so.
    pub dropped: Option<u64>,
}

/// What happened between a server address and its clients.
#[derive(Debug, Clone)]
pub struct Server {
    /// Connections with payload, by how they were parsed in the end.
    pub protocols: BTreeMap<Protocol, u64>,
    /// Different client addresses, up to [`Limits::clients`](crate::Limits::clients).
    pub clients: usize,
    pub requests: Requests,
    pub parsing: Parsing,
    pub handshakes: Handshakes,
    pub closings: Closings,
    pub tcp: TcpEvents,
    /// In order of time and without gaps, except for gaps of more than an hour.
    pub windows: Vec<Window>,
}

/// Requests and response times, in nanoseconds, from the first byte of the request.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Requests with a complete response.
    pub answered: u64,
    /// Requests whose response did not come before the end of connection or capture, or was lost.
    pub unanswered: u64,
    /// Until the first byte of the response.
    pub first_byte_ns: Histogram<u64>,
    /// Until the last byte of the response.
    pub last_byte_ns: Histogram<u64>,
    /// Sum of all times until the last byte.
    pub total: Duration,
    pub kinds: BTreeMap<Kind, Kinds>,
}

/// The answered requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    pub answered: u64,
    /// Sum of all times until the last byte.
    pub total: Duration,
    pub longest: Duration,
}

/// How well the protocol could be followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parsing {
    /// Times that bytes were missing or contradicted the protocol. Until the parser is in step
    /// again, requests are counted in turns.
    pub lost: u64,
    /// Times that a parser was in step again.
    pub regained: u64,
    /// Connections that were left to turns for good.
    pub given_up: u64,
    /// Connections whose bytes no parser can read: TLS, compression, replication.
    pub opaque: u64,
    /// Responses without a request.
    pub unrequested: u64,
}

/// How connections began.
#[derive(Debug, Clone)]
pub struct Handshakes {
    /// SYNs of clients, without retransmissions.
    pub attempts: u64,
    /// Connections that existed when the capture began.
    pub existing: u64,
    pub established: u64,
    /// SYNs that the server answered with RST.
    pub refused: u64,
    /// SYNs without an answer.
    pub unanswered: u64,
    /// From the SYN to the client's ACK of the SYN-ACK.
    pub duration_ns: Histogram<u64>,
    /// SYNs and SYN-ACKs that were sent again.
    pub retransmissions: u64,
    /// From the first SYN to each retransmission.
    pub retransmission_gaps_ns: Histogram<u64>,
}

/// How connections ended.
#[derive(Debug, Clone)]
pub struct Closings {
    /// Connections whose client sent the first FIN, and so keeps the port in TIME_WAIT.
    pub by_client: u64,
    pub by_server: u64,
    /// Connections that ended with RST of an endpoint.
    pub resets_by_client: u64,
    pub resets_by_server: u64,
    /// From SYN to the second FIN or the RST, of connections whose SYN is in the capture.
    pub lifetime_ns: Histogram<u64>,
}

/// Segments that say something about network and buffers.
#[derive(Debug, Clone)]
pub struct TcpEvents {
    pub segments: u64,
    /// Payload without retransmissions.
    pub bytes_from_clients: u64,
    pub bytes_to_clients: u64,
    pub retransmissions: u64,
    /// From the first sending to each retransmission, where both were captured.
    pub retransmission_gaps_ns: Histogram<u64>,
    pub out_of_order: u64,
    /// Copies of the same packet, as captures on several interfaces have them.
    pub duplicates: u64,
    pub keep_alives: u64,
    /// Times that a client, or the server, closed its receive window.
    pub zero_windows_of_clients: u64,
    pub zero_windows_of_server: u64,
    /// Gaps of bytes that the receiver acknowledged, but the capture lacks: the capture lost them.
    pub holes: u64,
    pub hole_bytes: u64,
    /// Bytes behind the snap length.
    pub cut_bytes: u64,
}

/// One window of a server's series.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub start: Timestamp,
    pub length: Duration,
    /// False for the first and the last window, which the capture covers only in part.
    pub complete: bool,
    /// Requests that began.
    pub arrivals: u64,
    /// Responses that ended.
    pub responses: u64,
    /// Mean number of outstanding requests (N).
    pub concurrency: f64,
    /// Mean time until the last byte (R) of the responses that ended here.
    pub response_mean: Option<Duration>,
    /// Quantiles of the same, exact to six percent.
    pub response_p50: Option<Duration>,
    pub response_p99: Option<Duration>,
    pub response_max: Option<Duration>,
    pub opened: u64,
    pub closed: u64,
    pub resets: u64,
    pub retransmissions: u64,
    pub syn_retransmissions: u64,
    pub zero_windows: u64,
    pub bytes_from_clients: u64,
    pub bytes_to_clients: u64,
}

impl Window {
    /// Responses per second (X).
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.responses as f64 / self.length.as_secs_f64()
    }
}

impl Server {
    fn new() -> Self {
        Self {
            protocols: BTreeMap::new(),
            clients: 0,
            requests: Requests {
                answered: 0,
                unanswered: 0,
                first_byte_ns: histogram(),
                last_byte_ns: histogram(),
                total: Duration::ZERO,
                kinds: BTreeMap::new(),
            },
            parsing: Parsing::default(),
            handshakes: Handshakes {
                attempts: 0,
                existing: 0,
                established: 0,
                refused: 0,
                unanswered: 0,
                duration_ns: histogram(),
                retransmissions: 0,
                retransmission_gaps_ns: histogram(),
            },
            closings: Closings {
                by_client: 0,
                by_server: 0,
                resets_by_client: 0,
                resets_by_server: 0,
                lifetime_ns: histogram(),
            },
            tcp: TcpEvents {
                segments: 0,
                bytes_from_clients: 0,
                bytes_to_clients: 0,
                retransmissions: 0,
                retransmission_gaps_ns: histogram(),
                out_of_order: 0,
                duplicates: 0,
                keep_alives: 0,
                zero_windows_of_clients: 0,
                zero_windows_of_server: 0,
                holes: 0,
                hole_bytes: 0,
                cut_bytes: 0,
            },
            windows: Vec::new(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("two digits are a valid precision")
}

/// Adds a value to a histogram that grows with its values.
pub(crate) fn record(histogram: &mut Histogram<u64>, ns: u64) {
    // No capture lasts longer than 2^62 ns, 146 years; the histogram grows up to that.
    let recorded = histogram.record(ns.clamp(1, 1 << 62));
    debug_assert!(recorded.is_ok(), "{recorded:?}");
}
