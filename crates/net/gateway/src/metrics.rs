//! Metrics for Prometheus, by HTTP.
//!
//! Source: the text format of OpenMetrics 1.0, which the client library of Prometheus writes, and
//! RFC 9112. There is no listener unless `metrics.listen` names one.
//!
//! The adversary is a remote client that reaches the listener. Metrics change nothing and name no
//! client. A request has at most 8 KiB, of which the first line counts, and two seconds; each
//! connection has one request. One thread serves one client after the other, so a client that is
//! slow on purpose delays other readers of the metrics, and nothing else.
//!
//! Deliberately absent: TLS and passwords. Listen on 127.0.0.1 behind a proxy for these.

mod families;
mod tcp;

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use httparse::{EMPTY_HEADER, Request, Status};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::control;
use crate::ending::Ending;
use crate::observer::Observer;
use crate::timed::Timed;
use families::Snapshot;

/// Most bytes of the head of a request.
const MOST_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;
/// How long a client may take for its request, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What all names begin with.
const PREFIX: &str = "saiga_gateway";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// A listener, which does not wait.
///
/// # Errors
/// Those of bind(2): EADDRINUSE, EADDRNOTAVAIL, EACCES.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers requests until the gateway ends.
pub(crate) fn serve(listener: &TcpListener, observer: &Observer, ending: &Ending) {
    while let Some((client, _)) = ending.accept(listener.as_fd(), || listener.accept()) {
        // A client that has ended, or is too slow, gets no answer.
        let _lost = answer(client, || observer.status());
    }
}

/// Answers the request of a client.
fn answer(mut client: TcpStream, status: impl FnOnce() -> control::Status) -> io::Result<()> {
    let is_whole = |head: &[u8]| head.windows(4).any(|end| end == b"\r\n\r\n");
    let head = Timed::new(&mut client, PATIENCE).read_until(MOST_BYTES, is_whole)?;
    let (line, kind, body) = match path(&head).as_deref() {
        Some("/metrics") => match encoded(status()) {
            Some(body) => ("200 OK", OPEN_METRICS, body),
            None => ("500 Internal Server Error", TEXT, String::new()),
        },
        Some(_) => ("404 Not Found", TEXT, "see /metrics\n".to_owned()),
        None => ("400 Bad Request", TEXT, "send GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    let mut timed = Timed::new(&mut client, PATIENCE);
    timed.write_all(head.as_bytes())?;
    timed.write_all(body.as_bytes())
}

/// The path of a GET request, without its query; `None` for other requests.
fn path(head: &[u8]) -> Option<String> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let parsed = request.parse(head).ok()?;
    let target = request
        .path
        .filter(|_| matches!(parsed, Status::Complete(_)))?;
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    (request.method == Some("GET")).then(|| path.to_owned())
}

/// The metrics as text.
fn encoded(status: control::Status) -> Option<String> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Snapshot::new(status)));
    let mut text = String::new();
    text::encode(&mut text, &registry).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::Ipv4Addr;
    use std::thread;

    use super::families::tests::status;

    /// The answer to a request, after which the client is silent.
    fn said(request: &str) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let serving = thread::spawn(move || answer(server, status));
        client.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        serving.join().unwrap().unwrap();
        text
    }

    #[test]
    fn only_a_get_of_the_metrics_has_them() {
        let host = "Host: x\r\n\r\n";
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n"),
            ("GET /metrics?a=b HTTP/1.0\r\n", "HTTP/1.1 200 OK\r\n"),
            ("GET / HTTP/1.1\r\n", "HTTP/1.1 404 Not Found\r\n"),
            ("POST /metrics HTTP/1.1\r\n", "HTTP/1.1 400 Bad Request\r\n"),
            ("\u{1}\r\n", "HTTP/1.1 400 Bad Request\r\n"),
        ] {
            let answer = said(&format!("{request}{host}"));
            assert!(answer.starts_with(expected), "{request}: {answer}");
        }
    }

    #[test]
    fn the_length_of_an_answer_is_told() {
        let answer = said("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        assert!(body.ends_with("# EOF\n"), "{body}");
    }
}
