//! The packets of a server while they pass (`man 7 packet`): its requests one by one, with their
//! response times and their number in progress.

mod filter;
mod ring;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use saiga_capture::{Analyser, Traffic};

use crate::source::capture;
use ring::Ring;

/// Longest wait for packets, after which the thread looks whether it should end.
const PAUSE: Duration = Duration::from_millis(100);

/// A capture in progress.
#[derive(Debug)]
pub struct Packets {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Traffic>,
}

impl Packets {
    /// Begins to analyse the segments from and to the ports of this network namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW.
    pub fn start(ports: &BTreeSet<u16>) -> io::Result<Self> {
        let mut ring = Ring::open(&mut filter::program(ports))?;
        let mut analyser = Analyser::new(&capture::options(ports));
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let read = move || {
            loop {
                // Read before the ring, so that the last packets are not left in it.
                let is_last = asked.load(Ordering::Acquire);
                let came = ring.read(PAUSE, &mut |packet| analyser.packet(packet));
                analyser.dropped(ring.dropped());
                if is_last && !came {
                    return analyser.finish();
                }
            }
        };
        let thread = thread::Builder::new()
            .name("packets".to_owned())
            .spawn(read)?;
        Ok(Self { stop, thread })
    }

    /// Ends the capture, and returns what it showed.
    ///
    /// # Panics
    /// If the analysis panicked.
    #[must_use]
    pub fn finish(self) -> Traffic {
        self.stop.store(true, Ordering::Release);
        self.thread.join().expect("the analysis does not panic")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Sends requests of the Redis protocol to a server of this process; returns its port.
    fn talk(address: &str, requests: usize) -> (u16, Packets) {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let packets = Packets::start(&BTreeSet::from([port])).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for _ in 0..requests {
                stream.read_exact(&mut [0; 14]).unwrap();
                stream.write_all(b"+PONG\r\n").unwrap();
            }
        });
        let to = format!("{}:{port}", address.rsplit_once(':').unwrap().0);
        let mut client = TcpStream::connect(to).unwrap();
        for _ in 0..requests {
            client.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
            client.read_exact(&mut [0; 7]).unwrap();
        }
        server.join().unwrap();
        (port, packets)
    }

    #[test]
    fn each_request_on_loopback_is_seen_once() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (port, packets) = talk(address, 300);
            let traffic = packets.finish();
            let answered: Vec<u64> = traffic
                .servers
                .iter()
                .filter(|(address, _)| address.port() == port)
                .map(|(_, server)| server.requests.answered)
                .collect();
            assert_eq!(answered, [300], "{address}: {:?}", traffic.marks);
        }
    }

    #[test]
    fn other_ports_are_left_out() {
        let other = Packets::start(&BTreeSet::from([1])).unwrap();
        let (_, packets) = talk("127.0.0.1:0", 3);
        assert!(packets.finish().packets > 0);
        assert_eq!(other.finish().packets, 0);
    }
}
