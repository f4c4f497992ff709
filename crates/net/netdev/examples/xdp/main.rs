//! A TCP host on the queues of a network interface that stays with the kernel: it serves echo at
//! port 7 of the given addresses, and the kernel serves the rest.
//!
//!     cargo run --release -p saiga-netdev --example xdp -- vs 10.0.0.1/24 fd00::1/64
//!         [--mode native|generic] [--vlan ID]
//!
//! The addresses are those of the kernel's interface. Use a network namespace unless the network is
//! yours. ARP and neighbour discovery stay with the kernel, so this host takes the MAC address of
//! another host from the frames that come from there. The process ends by a signal, and the kernel
//! then gets all frames.

#[path = "../../../stack/examples/tap/echo.rs"]
mod echo;

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use saiga_netdev::xdp::{Interface, Options, Queue, XdpMode};
use saiga_netdev::{Device as _, DeviceError, Frame};
use saiga_stack::{Config, Instant, Link, Listen, Network, Presence, Secrets, Stack};
use saiga_wire::ethernet::{self, Tag, Tags};
use saiga_wire::frame::Packet;
use saiga_wire::offload::ChecksumState;

use echo::{BUFFER, Echo};

const PORT: u16 = 7;
/// Most frames that are handled before answers are sent.
const BATCH: usize = 64;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("xdp: {error}");
            ExitCode::from(2)
        }
    }
}

/// What the command line says.
struct Arguments {
    name: String,
    addresses: Vec<String>,
    options: Options,
    tags: Tags,
}

impl Arguments {
    fn read(arguments: Vec<String>) -> Result<Self, Failure> {
        let mut words = Vec::new();
        let mut options = Options::default();
        let mut tags = Tags::None;
        let mut rest = arguments.into_iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().unwrap_or_default();
            match word.as_str() {
                "--mode" => options.mode = Some(mode(&value())?),
                "--vlan" => {
                    let vlan = value().parse()?;
                    (tags, options.vlan) = (Tags::One(Tag::vlan(vlan)), Some(vlan));
                }
                _ => words.push(word),
            }
        }
        if words.len() < 2 {
            return Err("usage: xdp NAME ADDRESS/LENGTH... [--mode MODE] [--vlan ID]".into());
        }
        Ok(Self {
            name: words.remove(0),
            addresses: words,
            options,
            tags,
        })
    }
}

fn mode(text: &str) -> Result<XdpMode, Failure> {
    match text {
        "native" => Ok(XdpMode::Native),
        "generic" => Ok(XdpMode::Generic),
        _ => Err(format!("{text} is not a mode; give native or generic").into()),
    }
}

fn run(arguments: Vec<String>) -> Result<std::convert::Infallible, Failure> {
    let arguments = Arguments::read(arguments)?;
    let interface = Interface::open(&arguments.name, &arguments.options)?;
    let clock = Clock::start();
    let mut workers = Vec::new();
    for queue in 0..interface.queues() {
        let queue = interface.open_queue(queue.try_into()?)?;
        let stack = stack(&queue, &arguments, &clock)?;
        workers.push((queue, stack));
    }
    for text in &arguments.addresses {
        let address = text.split('/').next().unwrap_or(text);
        interface.serve(SocketAddr::new(address.parse()?, PORT))?;
    }
    for (queue, stack) in workers {
        thread::spawn(move || {
            let Err(error) = work(queue, stack, &clock);
            eprintln!("xdp: {error}");
            std::process::exit(2);
        });
    }
    println!("ready {:?} {}", interface.mode(), interface.queues());
    loop {
        thread::park();
    }
}

fn stack(queue: &Queue, arguments: &Arguments, clock: &Clock) -> Result<Stack, Failure> {
    let info = queue.info();
    let config = Config {
        presence: Presence::Alone,
        ..Config::default()
    };
    let addresses = arguments.addresses.iter();
    let interface = saiga_stack::Interface {
        link: Link::Ethernet {
            mac: info.mac.ok_or("the interface has no MAC address")?,
            tags: arguments.tags,
        },
        mtu: info.mtu,
        addresses: addresses
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?,
    };
    let mut stack = Stack::new(config, secrets()?, clock.now());
    let network = Network {
        interfaces: vec![interface],
        routes: Vec::new(),
    };
    stack.configure(network, clock.now())?;
    stack.listen(Listen {
        address: None,
        port: PORT,
        backlog: 256,
        has_cookies: true,
        buffer: BUFFER,
    })?;
    Ok(stack)
}

/// One queue with its stack.
fn work(
    mut queue: Queue,
    mut stack: Stack,
    clock: &Clock,
) -> Result<std::convert::Infallible, Failure> {
    let mut echo = Echo::default();
    let mut known = HashSet::new();
    let mut is_full = false;
    loop {
        let due = stack.next_timeout().map(|at| clock.until(at));
        wait(&queue, due, is_full)?;
        loop {
            let now = clock.now();
            let frames = queue.receive(BATCH, &mut |frame: Frame<'_>| {
                learn(&mut stack, &mut known, &frame, now);
                let state = frame.offload.checksum_state();
                let _verdict = stack.on_frame(frame.bytes, state, now, &mut echo);
            })?;
            if frames == 0 {
                stack.on_timeout(now, &mut echo);
            }
            echo.work(&mut stack, now);
            is_full = send(&mut queue, &mut stack, &mut echo, now)?;
            if frames == 0 {
                break;
            }
        }
    }
}

/// Sends the frames of the stack. Returns whether the queue is full.
fn send(
    queue: &mut Queue,
    stack: &mut Stack,
    echo: &mut Echo,
    now: Instant,
) -> Result<bool, DeviceError> {
    let is_full = loop {
        let Some(room) = queue.room() else {
            break true;
        };
        let Some(outgoing) = stack.poll_transmit(room, now, echo) else {
            break false;
        };
        queue.send(outgoing.length, &outgoing.offload);
    };
    queue.flush()?;
    Ok(is_full)
}

/// Takes the MAC address of a host from its first frame.
fn learn(stack: &mut Stack, known: &mut HashSet<IpAddr>, frame: &Frame<'_>, now: Instant) {
    let Ok((link, packet)) = ethernet::Header::parse(frame.bytes) else {
        return;
    };
    let Ok(packet) = Packet::parse(packet, ChecksumState::Trusted) else {
        return;
    };
    let host = packet.network.addresses().source();
    if known.insert(host) {
        stack.set_neighbour(0, host, link.source, now);
    }
}

/// Waits for frames until `due`, and for room if the queue is full.
fn wait(queue: &Queue, due: Option<Duration>, is_full: bool) -> std::io::Result<()> {
    let mut events = PollFlags::IN;
    if is_full {
        events |= PollFlags::OUT;
    }
    let due = due.map(Timespec::try_from).and_then(Result::ok);
    rustix::event::poll(
        &mut [PollFd::new(&queue.descriptor(), events)],
        due.as_ref(),
    )?;
    Ok(())
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
#[derive(Clone, Copy)]
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
