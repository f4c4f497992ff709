//! Analyses a generated capture: bytes per second of wall clock and of CPU time, and memory.
//!
//! `cargo run --release -p saiga-capture --example capture_throughput [MIB] [FILE]`. The capture is
//! made while it is read, from a block of exchanges that is repeated with new times and ports; the
//! time of that is measured alone and subtracted. With FILE it is read from there, or written
//! first.

#[path = "../tests/captures/wire.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod wire;

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::Path,
    time::Instant,
};

use saiga_capture::{Options, Server, read};
use wire::{Side, Wire};

const SERVERS: [&str; 4] = [
    "10.0.0.9:6379",
    "10.0.0.9:3306",
    "10.0.0.9:5432",
    "10.0.0.9:80",
];
const CONNECTIONS: usize = 64;
const ROUNDS: usize = 40;
const TICKS_PER_SECOND: f64 = 100.0;

/// A packet of MySQL.
fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a packet").to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

/// The login of MySQL, whose result sets have no EOF behind their columns (CLIENT_DEPRECATE_EOF).
fn log_in() -> [(Side, Vec<u8>); 3] {
    let capabilities = (1u32 << 24).to_le_bytes();
    let login = [&capabilities[..], &[0; 28], b"root\0"].concat();
    [
        (Side::Server, packet(0, b"\n8.0.36\0\x01\0\0\0abcdefgh\0")),
        (Side::Client, packet(1, &login)),
        (Side::Server, packet(2, &[0, 0, 0, 2, 0, 0, 0])),
    ]
}

fn exchange(server: &str, round: usize) -> (Vec<u8>, Vec<u8>) {
    let value = vec![b'v'; 100 + 131 * (round % 9)];
    match server.rsplit(':').next() {
        Some("6379") => {
            let reply = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
            (b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n".to_vec(), reply)
        }
        Some("3306") => {
            let count = u8::try_from(1 + round % 5).expect("at most five");
            let row = [&[250][..], &[b'r'; 250]].concat();
            let rows = (0..count).flat_map(|number| packet(3 + number, &row));
            let rows: Vec<u8> = rows.collect();
            let end = packet(3 + count, &[0xfe, 0, 0, 2, 0, 0, 0]);
            let reply = [packet(1, &[1]), packet(2, &[3; 40]), rows, end].concat();
            (packet(0, b"\x03SELECT c FROM sbtest1 WHERE id = 5"), reply)
        }
        Some("5432") => {
            let message = |tag: u8, body: &[u8]| {
                let length = u32::try_from(body.len() + 4)
                    .expect("a message")
                    .to_be_bytes();
                [&[tag][..], &length, body].concat()
            };
            let row = message(b'D', &value);
            let reply = [message(b'T', &[0; 30]), row, message(b'C', b"SELECT 1\0")].concat();
            (
                message(b'Q', b"SELECT 1\0"),
                [reply, message(b'Z', b"I")].concat(),
            )
        }
        _ => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", value.len());
            let request = b"GET /index.html HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n";
            (request.to_vec(), [head.as_bytes(), &value].concat())
        }
    }
}

fn block() -> Vec<u8> {
    let mut wire = Wire::new();
    wire.now = 1_000_000_000_000;
    for connection in 0..CONNECTIONS {
        let server = SERVERS[connection % SERVERS.len()];
        let mut open = wire.open(&format!("10.0.1.1:{}", 40_000 + connection), server);
        if server.ends_with(":3306") {
            for (side, bytes) in log_in() {
                wire.send(&mut open, side, &bytes);
            }
        }
        for round in 0..ROUNDS {
            let (request, reply) = exchange(server, round);
            wire.send(&mut open, Side::Client, &request);
            for part in reply.chunks(1_448) {
                wire.send(&mut open, Side::Server, part);
            }
            wire.flags(&open, Side::Client, wire::ACK);
        }
        wire.close(&mut open, Side::Client);
    }
    // Without the file header, which comes once.
    wire.pcap().split_off(24)
}

/// Repeats the block with later times until enough bytes are read.
struct Generator {
    header: Vec<u8>,
    block: Vec<u8>,
    place: usize,
    left: u64,
}

impl Generator {
    fn new(bytes: u64) -> Self {
        Self {
            header: Wire::new().pcap(),
            block: block(),
            place: 0,
            left: bytes,
        }
    }

    /// Moves all records of the block on by one second; the block takes less.
    fn age(&mut self) {
        let mut at = 0;
        while at < self.block.len() {
            let word =
                |at: usize| u32::from_le_bytes(*self.block[at..].first_chunk().expect("a record"));
            let (second, length) = (word(at) + 1, word(at + 8));
            self.block[at..at + 4].copy_from_slice(&second.to_le_bytes());
            at += 16 + usize::try_from(length).expect("a length");
        }
    }
}

impl Read for Generator {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.header.is_empty() {
            let header = std::mem::take(&mut self.header);
            buffer[..header.len()].copy_from_slice(&header);
            return Ok(header.len());
        }
        if self.place == self.block.len() {
            if self.left == 0 {
                return Ok(0);
            }
            self.age();
            self.place = 0;
        }
        let count = buffer.len().min(self.block.len() - self.place);
        buffer[..count].copy_from_slice(&self.block[self.place..self.place + count]);
        self.place += count;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

/// User and system time of this process in seconds.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let behind_name = stat.rsplit(')').next().expect("a name in parentheses");
    let fields: Vec<_> = behind_name.split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .expect("a peak");
    line.split_whitespace()
        .skip(1)
        .collect::<Vec<_>>()
        .join(" ")
}

fn measure(reader: impl Read, label: &str, without: (f64, f64)) {
    let (wall, cpu) = (Instant::now(), cpu_s());
    let traffic = read(reader, &Options::default()).expect("a capture");
    let (wall, cpu) = (
        wall.elapsed().as_secs_f64() - without.0,
        cpu_s() - cpu - without.1,
    );
    let mib = traffic.bytes as f64 / f64::from(1 << 20);
    let requests: u64 = traffic
        .servers
        .values()
        .map(|server| server.requests.answered)
        .sum();
    println!(
        "{label}: {mib:.0} MiB of frames, {} packets, {requests} requests; \
         {:.0} MiB/s of wall clock, {:.0} MiB/s of CPU time; peak memory {}",
        traffic.packets,
        mib / wall,
        mib / cpu,
        peak_memory()
    );
    traffic.marks.iter().for_each(|mark| println!("  {mark}"));
    for (
        address,
        Server {
            requests,
            protocols,
            ..
        },
    ) in &traffic.servers
    {
        assert!(
            requests.answered > 0,
            "{address}: no request was recognised"
        );
        let ms = |ns: u64| ns as f64 / 1e6;
        let times = &requests.last_byte_ns;
        println!(
            "  {address} {protocols:?}: {} requests, mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}; \
             first byte p50 {:.3} ms",
            requests.answered,
            requests.total.as_secs_f64() * 1e3 / requests.answered.max(1) as f64,
            ms(times.value_at_quantile(0.5)),
            ms(times.value_at_quantile(0.99)),
            ms(times.max()),
            ms(requests.first_byte_ns.value_at_quantile(0.5)),
        );
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mib = arguments
        .next()
        .map_or(1_024, |text| text.parse().expect("a number of MiB"));
    let bytes = mib << 20;
    if let Some(path) = arguments.next() {
        let path = Path::new(&path);
        if !path.exists() {
            io::copy(&mut Generator::new(bytes), &mut File::create(path)?)?;
        }
        measure(BufReader::new(File::open(path)?), "file", (0.0, 0.0));
        return Ok(());
    }
    let (wall, cpu) = (Instant::now(), cpu_s());
    let mut sink = io::sink();
    let copied = io::copy(&mut Generator::new(bytes), &mut sink)?;
    sink.flush()?;
    let alone = (wall.elapsed().as_secs_f64(), cpu_s() - cpu);
    println!("generated {} MiB in {:.2} s", copied >> 20, alone.0);
    measure(Generator::new(bytes), "generated", alone);
    Ok(())
}
