//! A packet capture: the load at each server in it, and what TCP had to repeat.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use saiga_capture::{Mark, Options, ReadError, Server, Traffic, read};

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
    #[error("{path} has no request with a response{hint}")]
    NoRequests { path: PathBuf, hint: String },
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

/// Adds the busiest server of a capture, or the server at `port`, as a hop. Other servers are named
/// as a gap.
///
/// # Errors
/// The file is not a capture that can be read, or has no request with a response.
pub fn add(
    path: &Path,
    content: impl std::io::Read,
    port: Option<u16>,
    observation: &mut Observation,
) -> Result<(), CaptureError> {
    let options = Options {
        servers: port.map(|port| (port, None)).into_iter().collect(),
        only_servers: port.is_some(),
        ..Options::default()
    };
    let traffic = read(content, &options).map_err(|source| CaptureError::Read {
        path: path.to_owned(),
        source,
    })?;
    let Some((address, server)) = busiest(&traffic.servers, port) else {
        return Err(CaptureError::NoRequests {
            path: path.to_owned(),
            hint: port.map_or(String::new(), |port| format!(" at port {port}")),
        });
    };
    observation.load.hops.push(hop(address, server));
    add_tcp(server, observation);
    let source = path.display().to_string();
    let others = traffic.servers.len() - 1;
    if others > 0 && port.is_none() {
        observation.gaps.push(Gap {
            source: source.clone(),
            reason: format!(
                "{} left out; give --port to choose another",
                saiga_document::number::counted(others as u64, "other server")
            ),
        });
    }
    observation.gaps.extend(marks(&traffic, &source));
    Ok(())
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

/// The load at a server: `N` is the mean number of requests in progress.
fn hop(address: SocketAddr, server: &Server) -> Hop {
    let first = server.windows.first().map(|window| window.start);
    let windows = server
        .windows
        .iter()
        .filter(|window| window.complete && window.responses > 0)
        .map(|window| Window {
            time_s: first.map_or(0.0, |first| window.start.since(first).as_secs_f64()),
            clients: window.concurrency,
            throughput: window.throughput(),
            response_ms: window
                .response_mean
                .map_or(0.0, |mean| mean.as_secs_f64() * 1000.0),
        })
        .filter(|window| window.clients > 0.0);
    let mut hop = Hop::new(address.to_string(), windows.collect());
    hop.times_us = microseconds(&server.requests.last_byte_ns);
    hop
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

/// Adds the rates of repeated and dropped segments, by the names of the host's metrics.
fn add_tcp(server: &Server, observation: &mut Observation) {
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
    ] {
        observation
            .metrics
            .add(name, seconds, count as f64 / seconds);
    }
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
