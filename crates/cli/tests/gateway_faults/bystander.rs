//! A client on another host that talks to Redis during faults and attacks, and checks each byte.
//!
//! Each exchange is a pipeline of ECHO, SET and GET with random bytes, whose answers are known
//! before it is sent. A connection may be lost only in an outage that the test has declared; a
//! wrong byte is never excused. After a loss the client connects again and uses new keys, because
//! it does not know which of its last commands the server has executed.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fastrand::Rng;
use saiga_trials::sys::pause_1ms;

use crate::world::World;

/// A server that does not move a byte for so long does not serve.
const PATIENCE: Duration = Duration::from_secs(20);
/// A SYN without an answer for so long is followed by one from another port.
const ATTEMPT: Duration = Duration::from_millis(500);
/// How often a waiting client looks whether its wait is over.
const TICK: Duration = Duration::from_millis(50);
/// Most commands of a pipeline.
const MOST_COMMANDS: u32 = 12;
/// Keys of a connection.
const KEYS: u8 = 24;
/// Limits of the random lengths: a few bytes, a segment, several, a super-segment.
const LENGTHS: [usize; 6] = [8, 100, 1_500, 1_500, 9_000, 70_000];

/// The client. It ends with the value.
pub(crate) struct Bystander {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the client's thread and the test share.
struct Shared {
    server: SocketAddr,
    over: AtomicBool,
    exchanges: AtomicU64,
    losses: AtomicU64,
    /// Odd in an outage; even between two of them.
    outages: AtomicU64,
    /// The client's end of its connection.
    local: Mutex<Option<SocketAddr>>,
    failure: Mutex<Option<String>>,
}

/// Why a connection has ended.
enum Trouble {
    /// It was lost, which an outage excuses.
    Lost(String),
    /// An answer differs from the expected one.
    Wrong(String),
}

impl Bystander {
    /// A client on the client's host of `world`.
    pub(crate) fn start(world: &World, server: SocketAddr, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            server,
            over: AtomicBool::new(false),
            exchanges: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            outages: AtomicU64::new(0),
            local: Mutex::new(None),
            failure: Mutex::new(None),
        });
        let theirs = Arc::clone(&shared);
        let talk = move || theirs.talk(&mut Rng::with_seed(seed));
        let bystander = Self {
            shared,
            thread: Some(world.thread_on_client(talk)),
        };
        bystander.progress(1);
        bystander
    }

    /// Waits until the client has completed so many further exchanges.
    #[track_caller]
    pub(crate) fn progress(&self, count: u64) {
        let wanted = self.exchanges() + count;
        let began = Instant::now();
        while self.exchanges() < wanted {
            self.check();
            // The client's own patience ends before, and says more.
            assert!(began.elapsed() < 3 * PATIENCE, "the client does not go on");
            pause_1ms();
        }
    }

    /// Completed exchanges.
    pub(crate) fn exchanges(&self) -> u64 {
        self.shared.exchanges.load(Ordering::SeqCst)
    }

    /// Exchanges in a second, measured for `duration`.
    pub(crate) fn rate(&self, duration: Duration) -> f64 {
        let (began, before) = (Instant::now(), self.exchanges());
        while began.elapsed() < duration {
            pause_1ms();
        }
        (self.exchanges() - before) as f64 / began.elapsed().as_secs_f64()
    }

    /// The client's end of its present connection.
    pub(crate) fn local(&self) -> SocketAddr {
        self.shared.local.lock().unwrap().unwrap()
    }

    /// From now on, the connection may be lost.
    pub(crate) fn begin_outage(&self) {
        let outages = self.shared.outages.fetch_add(1, Ordering::SeqCst);
        assert_eq!(outages % 2, 0, "one outage at a time");
    }

    /// Connections that begin from now on must not be lost.
    pub(crate) fn end_outage(&self) {
        let outages = self.shared.outages.fetch_add(1, Ordering::SeqCst);
        assert_eq!(outages % 2, 1, "an outage has begun");
    }

    /// Ends the client; returns how many connections it has lost.
    #[track_caller]
    pub(crate) fn end(mut self) -> u64 {
        self.shared.over.store(true, Ordering::SeqCst);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok(), "the client has panicked");
        self.check();
        self.shared.losses.load(Ordering::SeqCst)
    }

    #[track_caller]
    fn check(&self) {
        let failure = self.shared.failure.lock().unwrap().clone();
        assert_eq!(failure, None, "client of {}", self.shared.server);
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

impl Shared {
    /// Connects and talks until the end, or until a loss without an excuse.
    fn talk(&self, rng: &mut Rng) {
        let (name, mut connections) = (rng.u64(..), 0);
        while !self.is_over() {
            connections += 1;
            // Few, so that the memory of the server is bounded.
            let prefix = format!("{name:x}:{}", connections % 4);
            let mut outage = self.outages.load(Ordering::SeqCst);
            let ended = self.connect(outage).and_then(|stream| {
                outage = self.outages.load(Ordering::SeqCst);
                let talk = |stream: TcpStream| self.converse(&stream, &prefix, outage, rng);
                stream.map_or(Ok(()), talk)
            });
            match ended {
                Ok(()) => {}
                Err(Trouble::Lost(_)) if self.is_excused(outage) => {
                    self.losses.fetch_add(1, Ordering::SeqCst);
                    pause_1ms();
                }
                Err(Trouble::Lost(how) | Trouble::Wrong(how)) => {
                    *self.failure.lock().unwrap() = Some(how);
                    return;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Whether a connection that began with `outage` may be lost.
    fn is_excused(&self, outage: u64) -> bool {
        outage % 2 == 1 || self.outages.load(Ordering::SeqCst) != outage
    }

    /// One connection: exchanges until the end of the test.
    fn converse(
        &self,
        stream: &TcpStream,
        prefix: &str,
        outage: u64,
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let mut pipelines = Pipelines {
            prefix,
            values: BTreeMap::new(),
        };
        while !self.is_over() {
            let (request, expected) = pipelines.next(rng);
            self.send(stream, &request, outage)?;
            self.receive(stream, &expected, outage)?;
            self.exchanges.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// A connection, or `None` at the end of the test. Attempts may fail, but not for ever.
    fn connect(&self, outage: u64) -> Result<Option<TcpStream>, Trouble> {
        let began = Instant::now();
        while !self.is_over() {
            match TcpStream::connect_timeout(&self.server, ATTEMPT) {
                Ok(stream) => {
                    let lost = |error: io::Error| Trouble::Lost(error.to_string());
                    stream.set_read_timeout(Some(TICK)).map_err(lost)?;
                    stream.set_write_timeout(Some(TICK)).map_err(lost)?;
                    stream.set_nodelay(true).map_err(lost)?;
                    *self.local.lock().unwrap() = Some(stream.local_addr().map_err(lost)?);
                    return Ok(Some(stream));
                }
                Err(error) if self.is_excused(outage) || began.elapsed() > PATIENCE => {
                    return Err(Trouble::Lost(format!("cannot connect: {error}")));
                }
                Err(_) => pause_1ms(),
            }
        }
        Ok(None)
    }

    fn send(&self, mut stream: &TcpStream, request: &[u8], outage: u64) -> Result<(), Trouble> {
        let mut sent = 0;
        while sent < request.len() {
            sent += self.patiently(outage, || stream.write(&request[sent..]))?;
        }
        Ok(())
    }

    /// Receives as many bytes as are expected, and compares each piece when it comes.
    fn receive(&self, mut stream: &TcpStream, expected: &[u8], outage: u64) -> Result<(), Trouble> {
        let (mut at, mut piece) = (0, vec![0; expected.len().min(64 << 10)]);
        while at < expected.len() {
            let most = piece.len().min(expected.len() - at);
            let count = self.patiently(outage, || stream.read(&mut piece[..most]))?;
            let wanted = &expected[at..at + count];
            if piece[..count] != *wanted {
                let differs = |(one, other): (&u8, &u8)| one != other;
                let first = piece.iter().zip(wanted).position(differs).unwrap_or(0);
                let place = at + first;
                return Err(Trouble::Wrong(format!(
                    "byte {place} of an answer is wrong"
                )));
            }
            at += count;
        }
        Ok(())
    }

    /// Repeats `act` while it can move nothing. No bytes are the end of the stream.
    fn patiently(
        &self,
        outage: u64,
        mut act: impl FnMut() -> io::Result<usize>,
    ) -> Result<usize, Trouble> {
        let began = Instant::now();
        loop {
            match act() {
                Ok(0) => return Err(Trouble::Lost("the stream has ended".to_owned())),
                Ok(count) => return Ok(count),
                Err(error) if is_wait(&error) => {
                    if self.is_excused(outage) || began.elapsed() > PATIENCE {
                        return Err(Trouble::Lost("no byte comes or goes".to_owned()));
                    }
                }
                Err(error) => return Err(Trouble::Lost(error.to_string())),
            }
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == ErrorKind::WouldBlock || kind == ErrorKind::TimedOut || kind == ErrorKind::Interrupted
}

/// The pipelines of one connection.
struct Pipelines<'a> {
    /// Begins the keys, so that they differ from those of the last connections.
    prefix: &'a str,
    /// The values of the keys that were set.
    values: BTreeMap<u8, Vec<u8>>,
}

impl Pipelines<'_> {
    /// A request and its answer.
    fn next(&mut self, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        for _ in 0..rng.u32(1..=MOST_COMMANDS) {
            let key = rng.u8(..KEYS);
            let name = format!("{}:{key}", self.prefix);
            match (rng.u8(..3), self.values.get(&key)) {
                (0, Some(value)) => {
                    command(&mut request, &[b"GET", name.as_bytes()]);
                    bulk(&mut answer, value);
                }
                (1, _) => {
                    let value = some_bytes(rng);
                    command(&mut request, &[b"SET", name.as_bytes(), &value]);
                    answer.extend_from_slice(b"+OK\r\n");
                    self.values.insert(key, value);
                }
                _ => {
                    let text = some_bytes(rng);
                    command(&mut request, &[b"ECHO", &text]);
                    bulk(&mut answer, &text);
                }
            }
        }
        (request, answer)
    }
}

fn some_bytes(rng: &mut Rng) -> Vec<u8> {
    let most = LENGTHS[rng.usize(..LENGTHS.len())];
    let mut bytes = vec![0; rng.usize(..=most)];
    rng.fill(&mut bytes);
    bytes
}

/// Appends a command in the protocol of Redis (RESP).
pub(crate) fn command(request: &mut Vec<u8>, words: &[&[u8]]) {
    request.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bulk(request, word);
    }
}

/// Appends a string in the protocol of Redis.
pub(crate) fn bulk(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}
