//! A packet capture: the load at each server in it, and what TCP had to repeat.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use saiga_capture::clock::{self, Offset, OffsetError};
use saiga_capture::{Mark, Options, ReadError, Server, Timestamp, Traffic};

use crate::observation::load::{Hop, Window};
use crate::observation::{Gap, Observation};

/// A clock of a capture that runs backwards by less than this is the order of two CPUs.
const JITTER: Duration = Duration::from_millis(1);

/// A capture is not usable.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: ReadError },
    /// No server answered a request.
    #[error("{name} has no request with a response{hint}")]
    NoRequests { name: String, hint: String },
}

/// Whether the first four bytes are those of a packet capture: pcap in both byte orders and both
/// resolutions, or pcapng.
#[must_use]
pub fn is_start(bytes: &[u8]) -> bool {
    const STARTS: [u32; 5] = [
        0xa1b2_c3d4,
        0xd4c3_b2a1,
        0xa1b2_3c4d,
        0x4d3c_b2a1,
        0x0a0d_0d0a,
    ];
    let start: Result<[u8; 4], _> = bytes.try_into();
    start.is_ok_and(|start| STARTS.contains(&u32::from_be_bytes(start)))
}

/// A capture that was read, with the server that is judged: the busiest one, or that of a port.
#[derive(Debug)]
pub struct Capture {
    /// Name of the source in outputs.
    source: String,
    traffic: Traffic,
    address: SocketAddr,
    is_chosen: bool,
}

/// How a capture is read: the servers at these ports, or all of them without ports.
#[must_use]
pub fn options(ports: &BTreeSet<u16>) -> Options {
    Options {
        servers: ports.iter().map(|port| (*port, None)).collect(),
        only_servers: !ports.is_empty(),
        ..Options::default()
    }
}

/// Reads a capture.
///
/// # Errors
/// The file is not a capture that can be read, or has no request with a response.
pub fn read(
    path: &Path,
    content: impl std::io::Read,
    port: Option<u16>,
) -> Result<Capture, CaptureError> {
    let options = options(&port.into_iter().collect());
    let traffic = saiga_capture::read(content, &options).map_err(|source| CaptureError::Read {
        path: path.to_owned(),
        source,
    })?;
    Capture::new(&path.display().to_string(), traffic, port)
}

impl Capture {
    /// Chooses the server.
    ///
    /// # Errors
    /// No server answered a request.
    pub fn new(source: &str, traffic: Traffic, port: Option<u16>) -> Result<Self, CaptureError> {
        let Some((address, _)) = busiest(&traffic.servers, port) else {
            return Err(CaptureError::NoRequests {
                name: source.to_owned(),
                hint: port.map_or(String::new(), |port| format!(" at port {port}")),
            });
        };
        Ok(Self {
            source: source.to_owned(),
            address,
            traffic,
            is_chosen: port.is_some(),
        })
    }

    fn server(&self) -> &Server {
        // `new` has found it.
        &self.traffic.servers[&self.address]
    }

    /// Address and port of the server, as the name of a hop.
    #[must_use]
    pub fn name(&self) -> String {
        self.address.to_string()
    }

    /// Start of the first window.
    #[must_use]
    pub fn start(&self) -> Timestamp {
        let first = self.server().windows.first();
        first.map_or(Timestamp::default(), |window| window.start)
    }

    /// The load at the server, with times in seconds since `zero` on another clock, which shows
    /// `ahead_ns` less than that of this capture.
    #[must_use]
    pub fn hop(&self, name: &str, zero: Timestamp, ahead_ns: i64) -> Hop {
        let windows = self
            .server()
            .windows
            .iter()
            .filter(|window| window.complete && window.responses > 0)
            .map(|window| {
                let since_ns = i128::from(window.start.0) - i128::from(zero.0);
                Window {
                    time_s: (since_ns - i128::from(ahead_ns)) as f64 / 1e9,
                    clients: window.concurrency,
                    throughput: window.throughput(),
                    response_ms: window
                        .response_mean
                        .map_or(0.0, |mean| mean.as_secs_f64() * 1000.0),
                    run: 0,
                }
            })
            .filter(|window| window.clients > 0.0);
        let mut hop = Hop::new(name, windows.collect());
        hop.times_us = microseconds(&self.server().requests.last_byte_ns);
        hop
    }

    /// How far the clock of another capture is ahead of this one's, from packets in both.
    ///
    /// # Errors
    /// They share no packets, or a clock was set.
    pub fn offset(&self, other: &Self) -> Result<Offset, OffsetError> {
        clock::offset(&self.traffic, &other.traffic)
    }

    /// Everything that makes the capture incomplete.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let others = self.traffic.servers.len() - 1;
        if others > 0 && !self.is_chosen {
            gaps.push(Gap {
                source: self.source.clone(),
                reason: format!(
                    "{} left out; give --port to choose another",
                    saiga_document::number::counted(others as u64, "other server")
                ),
            });
        }
        gaps.extend(marks(&self.traffic, &self.source));
        gaps
    }

    /// Adds all but the load: what TCP had to repeat, encrypted connections, steps of the clock,
    /// and what the capture lacks.
    pub fn add_events(&self, observation: &mut Observation) {
        add_rates(self.server(), observation);
        observation.gaps.extend(self.gaps());
        let step_s = clock_step_s(&self.traffic);
        let known_s = observation.clock_step_s.unwrap_or(0.0);
        observation.clock_step_s = Some(if step_s.abs() > known_s.abs() {
            step_s
        } else {
            known_s
        });
    }
}

/// The server with most responses.
fn busiest(
    servers: &BTreeMap<SocketAddr, Server>,
    port: Option<u16>,
) -> Option<(SocketAddr, &Server)> {
    servers
        .iter()
        .filter(|(address, _)| port.is_none_or(|port| address.port() == port))
        .filter(|(_, server)| server.requests.answered > 0)
        .max_by_key(|(_, server)| server.requests.answered)
        .map(|(address, server)| (*address, server))
}

/// The same times in microseconds, as rules have them.
fn microseconds(times_ns: &Histogram<u64>) -> Option<Histogram<u64>> {
    let mut times_us = Histogram::new(3).ok()?;
    for value in times_ns.iter_recorded() {
        let time_us = (value.value_iterated_to() / 1000).max(1);
        times_us.record_n(time_us, value.count_at_value()).ok()?;
    }
    Some(times_us)
}

/// Adds the rates of repeated segments, by the names of the host's metrics, and of encrypted
/// connections.
fn add_rates(server: &Server, observation: &mut Observation) {
    let seconds: f64 = server
        .windows
        .iter()
        .map(|window| window.length.as_secs_f64())
        .sum();
    let tcp = &server.tcp;
    let again = tcp.retransmissions + server.handshakes.retransmissions;
    for (name, count) in [
        ("tcp_retransmits_s", again),
        ("tcp_out_segments_s", tcp.segments),
        ("capture_encrypted_connections_s", server.parsing.opaque),
    ] {
        observation
            .metrics
            .add(name, seconds, count as f64 / seconds);
    }
}

/// The largest step back of the capture's clock in seconds, not above 0. A step forward looks like
/// a pause.
fn clock_step_s(traffic: &Traffic) -> f64 {
    let back = |mark: &Mark| {
        if let Mark::ClockBackwards { largest, .. } = mark {
            largest.as_secs_f64()
        } else {
            0.0
        }
    };
    -traffic.marks.iter().map(back).fold(0.0, f64::max)
}

/// Everything that makes the capture incomplete.
fn marks(traffic: &Traffic, source: &str) -> Vec<Gap> {
    let matters = |mark: &&Mark| {
        let Mark::ClockBackwards { largest, .. } = mark else {
            return true;
        };
        *largest >= JITTER
    };
    let gap = |mark: &Mark| Gap {
        source: source.to_owned(),
        reason: mark.to_string(),
    };
    traffic.marks.iter().filter(matters).map(gap).collect()
}
