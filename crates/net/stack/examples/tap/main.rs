//! A host on a TAP device: it answers ping and serves echo at port 7.
//!
//!     cargo run --release -p saiga-stack --example tap -- tap0 10.0.0.2/24 fd00::2/64 [--plain]
//!
//! The kernel is the other host: give `tap0` an address of the same network and set it up. Use a
//! network namespace (`unshare -n`) unless the network is yours. `--plain` leaves the device
//! without offloads. The process ends by a signal, and the device with it.

mod device;
mod echo;

use std::process::ExitCode;
use std::time::Duration;

use saiga_stack::{
    Config, Instant, Interface, Link, Listen, Network, Offload, Secrets, Segmentation, Stack,
};
use saiga_wire::ethernet::{Mac, Tags};
use saiga_wire::offload::Fill;
use saiga_wire::virtio::HEADER_BYTES;

use device::{FRAME_BYTES, Tap};
use echo::{BUFFER, Echo};

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("tap: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: Vec<String>) -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let has_offloads = !arguments.iter().any(|argument| argument == "--plain");
    arguments.retain(|argument| argument != "--plain");
    let split = arguments.split_first();
    let Some((name, addresses)) = split.filter(|(_, addresses)| !addresses.is_empty()) else {
        return Err("usage: tap NAME ADDRESS/LENGTH... [--plain]".into());
    };
    let tap = Tap::open(name, has_offloads).map_err(|error| {
        format!("{name} cannot be opened as a TAP device, which needs root: {error}")
    })?;
    let addresses = addresses
        .iter()
        .map(|text| text.parse().map_err(|error| format!("{text}: {error}")))
        .collect::<Result<_, _>>()?;
    let clock = Clock::start();
    let mut stack = Stack::new(config(has_offloads), secrets()?, clock.now());
    let interface = Interface {
        link: Link::Ethernet {
            mac: Mac([2, 0x5a, 0x16, 0, 0, 1]),
            tags: Tags::None,
        },
        mtu: 1500,
        addresses,
    };
    let network = Network {
        interfaces: vec![interface],
        routes: Vec::new(),
    };
    stack.configure(network, clock.now())?;
    stack.listen(Listen {
        address: None,
        port: 7,
        backlog: 256,
        has_cookies: true,
        buffer: BUFFER,
    })?;
    serve(tap, stack, &clock)
}

fn config(has_offloads: bool) -> Config {
    if !has_offloads {
        return Config::default();
    }
    let segmentation = Segmentation {
        checksum: Fill::PseudoHeader,
        most_bytes: 65_000,
    };
    Config {
        offload: Offload {
            checksum: Fill::PseudoHeader,
            segmentation: Some(segmentation),
        },
        ..Config::default()
    }
}

fn serve(
    mut tap: Tap,
    mut stack: Stack,
    clock: &Clock,
) -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let mut echo = Echo::default();
    let (mut buffer, mut room) = (vec![0; FRAME_BYTES], vec![0; FRAME_BYTES]);
    println!("ready");
    loop {
        let timeout = stack.next_timeout().map(|at| clock.until(at));
        tap.wait(timeout)?;
        while let Some(length) = tap.receive(&mut buffer)? {
            let now = clock.now();
            if let Some((header, frame)) = device::header(&buffer[..length]) {
                let _verdict = stack.on_frame(frame, header.checksum_state(), now, &mut echo);
            }
            echo.work(&mut stack, now);
            send(&mut tap, &mut stack, &mut echo, &mut room, now);
        }
        let now = clock.now();
        stack.on_timeout(now, &mut echo);
        echo.work(&mut stack, now);
        send(&mut tap, &mut stack, &mut echo, &mut room, now);
    }
}

/// Sends all frames of the stack. `buffer` has room for the largest.
fn send(tap: &mut Tap, stack: &mut Stack, echo: &mut Echo, buffer: &mut [u8], now: Instant) {
    while let Some(outgoing) = stack.poll_transmit(&mut buffer[HEADER_BYTES..], now, echo) {
        tap.send(&outgoing, buffer);
    }
}

fn secrets() -> std::io::Result<Secrets> {
    let mut bytes = [0; 48];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    let mut numbers = bytes.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    let mut key = || [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    Ok(Secrets {
        flows: key(),
        sequence_numbers: key(),
        cookies: key(),
    })
}

/// The present for the stack: microseconds since the start.
struct Clock(std::time::Instant);

impl Clock {
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn until(&self, at: Instant) -> Duration {
        Duration::from_micros(at.since(self.now()).0)
    }
}
