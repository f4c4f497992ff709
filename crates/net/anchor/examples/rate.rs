//! Anchors per second of one thread beside plain connections over loopback.
//!
//!     cargo run --release -p saiga-anchor --example rate
//!
//! One thread connects, accepts and closes, so a number is the work of both ends. The two kinds
//! take turns, and the median of the ratios of neighbouring turns counts. Needs root; runs in a
//! network namespace of its own.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

use rustix::thread::{UnshareFlags, unshare_unsafe};
use rustix::time::{ClockId, clock_gettime};
use saiga_anchor::{Anchors, Config, Opening, Routes, end};

/// Pairs of turns, and connections of one turn. TIME-WAIT of all turns fits the ephemeral ports.
const PAIRS: usize = 21;
const CONNECTIONS: usize = 500;

/// How the connecting end closes.
#[derive(Clone, Copy)]
enum Close {
    Fin,
    Reset,
}

/// The work for one connection.
#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    cpu_us: f64,
}

#[expect(unsafe_code, reason = "unshare(2) is unsafe for files alone")]
fn main() {
    // SAFETY: the flag is not CLONE_FILES, which could close descriptors of others.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("needs root");
    for line in ["link set lo up", "address add 10.77.0.1/32 dev lo"] {
        let done = Command::new("ip").args(line.split(' ')).status();
        assert!(done.unwrap().success());
    }
    let served = SocketAddr::from((Ipv4Addr::new(10, 77, 0, 1), 6000));
    let listener = TcpListener::bind(served).unwrap();
    let _routes = Routes::up(&Config::default(), &[served]).unwrap();
    let mut anchors = Anchors::new().unwrap();
    println!("median of {PAIRS} pairs of {CONNECTIONS} connections (least to greatest)");
    println!("| close | loopback/s | anchors/s | loopback CPU us | anchor CPU us | CPU ratio |");
    println!("|---|---|---|---|---|---|");
    let mut clients = (1_u32..).map(client);
    for (name, close) in [("FIN", Close::Fin), ("reset", Close::Reset)] {
        let mut plain = || TcpStream::connect(served).unwrap();
        let mut anchor = || {
            let opening = anchors.connect(clients.next().unwrap(), served).unwrap();
            let Opening::Established(anchor) = opening else {
                panic!("{opening:?}");
            };
            anchor
        };
        let (mut plains, mut anchored) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            // Each kind is first in every second pair.
            if pair % 2 == 0 {
                plains.push(turn(&listener, close, &mut plain));
                anchored.push(turn(&listener, close, &mut anchor));
            } else {
                anchored.push(turn(&listener, close, &mut anchor));
                plains.push(turn(&listener, close, &mut plain));
            }
        }
        let ratios = plains.iter().zip(&anchored);
        let ratios = spread(ratios.map(|(plain, anchor)| anchor.cpu_us / plain.cpu_us));
        let rate = |turns: &[Turn]| spread(turns.iter().map(|turn| turn.per_second))[1];
        let cpu = |turns: &[Turn]| spread(turns.iter().map(|turn| turn.cpu_us))[1];
        println!(
            "| {name} | {:.0} | {:.0} | {:.1} | {:.1} | {:.2} ({:.2} to {:.2}) |",
            rate(&plains),
            rate(&anchored),
            cpu(&plains),
            cpu(&anchored),
            ratios[1],
            ratios[0],
            ratios[2],
        );
    }
}

/// One of many clients, with ports of the ephemeral range.
fn client(number: u32) -> SocketAddr {
    let address = Ipv4Addr::from(0x0a80_0000 + number);
    let port = 32_768 + u16::try_from(number % 28_000).unwrap();
    SocketAddr::from((address, port))
}

fn turn(listener: &TcpListener, close: Close, open: &mut dyn FnMut() -> TcpStream) -> Turn {
    let (begun, cpu_before) = (Instant::now(), cpu_us());
    for _ in 0..CONNECTIONS {
        let stream = open();
        let (accepted, _) = listener.accept().unwrap();
        match close {
            Close::Fin => drop(stream),
            Close::Reset => end::reset(stream),
        }
        drop(accepted);
    }
    let count = CONNECTIONS as f64;
    Turn {
        per_second: count / begun.elapsed().as_secs_f64(),
        cpu_us: (cpu_us() - cpu_before) / count,
    }
}

/// CPU time of this thread in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Least value, median and greatest value.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}
