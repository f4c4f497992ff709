//! Two hosts, the wire between them, and the order in which things happen.

use std::net::SocketAddr;

use saiga_path::{Chance, Loss, Path};
use saiga_stack::{Config, Instant, Interface, Link, Listen, Micros, Network, Secrets, Stack};
use saiga_wire::ethernet::{Mac, Tags};
use saiga_wire::frame::Frame;
use saiga_wire::offload::ChecksumState;

use crate::application::{Applications, BUFFER};
use crate::naive::Naive;
use crate::wire::Wire;

/// Everything that happens in one world at most.
const MOST_STEPS: u64 = 300_000;
/// Time between two turns of applications that have something to do.
const TURN: Micros = Micros(1_000);
/// No world takes longer: the longest wait is that for a time-out of minutes, several times.
const MOST_TIME: Micros = Micros::from_secs(40_000);

/// What happens beside losses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    /// Share of the frames with a flipped bit.
    pub(crate) corruption: f64,
    /// Whether the wire is dead for some seconds.
    pub(crate) outage: bool,
    /// Whether the MTU of the first host shrinks, and grows again.
    pub(crate) change_of_mtu: bool,
    /// Whether a connection is aborted.
    pub(crate) aborts: bool,
}

struct Host {
    stack: Stack,
    applications: Applications,
}

enum Server {
    Stack(Box<Host>),
    Naive(Naive),
}

pub(crate) struct World {
    now: Instant,
    start: Instant,
    random: fastrand::Rng,
    client: Host,
    server: Server,
    to_server: Wire,
    to_client: Wire,
    trouble: Trouble,
    /// Whether frames get lost.
    may_lose: bool,
    steps: u64,
    /// Bytes that clients and servers write on each connection.
    totals: (u64, u64),
}

/// A cookie whose acknowledgement was lost for so long may not be valid any more.
const COOKIE_LIFE: Micros = Micros::from_secs(60);

fn network(host: u8, mtu: u16) -> Network {
    Network {
        interfaces: vec![Interface {
            link: Link::Ethernet {
                mac: Mac([2, 0, 0, 0, 0, host]),
                tags: Tags::None,
            },
            mtu,
            addresses: vec![format!("10.0.0.{host}/24").parse().unwrap()],
        }],
        routes: Vec::new(),
    }
}

fn host(number: u8, total: u64, random: &mut fastrand::Rng, now: Instant) -> Host {
    let mut config = Config::default();
    config.tcp.syn_retries = 20;
    config.tcp.syn_ack_retries = 20;
    config.tcp.data_retries = 60;
    config.tcp.orphan_retries = 60;
    config.tcp.has_ecn = random.bool();
    config.tcp.has_sack = random.u8(0..4) > 0;
    config.tcp.has_timestamps = random.u8(0..4) > 0;
    let secrets = Secrets {
        flows: [random.u64(..), random.u64(..)],
        sequence_numbers: [random.u64(..), random.u64(..)],
        cookies: [random.u64(..), random.u64(..)],
    };
    let mut stack = Stack::new(config, secrets, now);
    stack.configure(network(number, 1500), now).unwrap();
    Host {
        stack,
        applications: Applications::new(total, random.fork()),
    }
}

impl World {
    pub(crate) fn new(mut random: fastrand::Rng, paths: [Path; 2], trouble: Trouble) -> Self {
        let start = Instant(random.u64(0..1 << 40));
        let total = |random: &mut fastrand::Rng| [0, 1, 3_000, 100_000][random.usize(0..4)];
        let totals = (total(&mut random), total(&mut random));
        let is_naive = random.u8(0..4) == 0;
        let is_lossless = |path: &Path| path.loss == Loss::Random(Chance::NEVER);
        let may_lose = trouble.outage || !paths.iter().all(is_lossless);
        // A cookie that comes too late is not valid.
        let may_bake = !trouble.outage && random.bool();
        let mut client = host(1, totals.0, &mut random, start);
        let server = if is_naive {
            let mac = Mac([2, 0, 0, 0, 0, 2]);
            let address = [10, 0, 0, 2].into();
            assert!(client.stack.set_neighbour(0, address, mac, start));
            Server::Naive(Naive::new(totals.1.min(3_000)))
        } else {
            let mut server = host(2, totals.1, &mut random, start);
            let listen = Listen {
                address: None,
                port: 80,
                backlog: if may_bake { 1 } else { 16 },
                has_cookies: true,
                buffer: BUFFER,
            };
            server.stack.listen(listen).unwrap();
            Server::Stack(Box::new(server))
        };
        let [there, back] = paths;
        let mut world = Self {
            now: start,
            start,
            client,
            server,
            to_server: Wire::new(there, trouble.corruption, random.fork()),
            to_client: Wire::new(back, trouble.corruption, random.fork()),
            trouble,
            may_lose,
            steps: 0,
            totals,
            random,
        };
        world.connect(if is_naive { 1 } else { 3 });
        world
    }

    fn connect(&mut self, count: usize) {
        for _ in 0..count {
            let own = SocketAddr::from(([10, 0, 0, 1], 0));
            let peer = SocketAddr::from(([10, 0, 0, 2], 80));
            let stack = &mut self.client.stack;
            let id = stack.connect(own, peer, BUFFER, self.now).unwrap();
            let port = stack.flow(id).unwrap().local().port();
            self.client.applications.add(id, port, self.totals.0);
        }
    }

    /// Runs until all connections have ended.
    pub(crate) fn run(mut self) {
        while let Some(next) = self.next() {
            self.steps += 1;
            let lasted = self.now.since(self.start);
            let is_in_time = self.steps < MOST_STEPS && lasted < MOST_TIME;
            assert!(is_in_time, "no progress: {}", self.shown());
            self.now = self.now.max(next);
            self.disturb();
            self.deliver();
            self.work();
            self.transmit();
        }
        self.check();
    }

    fn shown(&self) -> String {
        let client = &self.client.applications.conversations;
        let server = match &self.server {
            Server::Stack(host) => format!("{:?}", host.applications.conversations),
            Server::Naive(naive) => format!("{naive:?}"),
        };
        format!(
            "{} steps, {:?}, {:?}, client {client:?}, server {server}",
            self.steps, self.now, self.trouble
        )
    }

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let is_busy = self.client.applications.is_busy() || self.server.is_busy();
        let next = [
            is_busy.then(|| self.now + TURN),
            self.to_server.next_arrival(),
            self.to_client.next_arrival(),
            self.client.stack.next_timeout(),
            self.server.next_timeout(),
            (self.steps == 0).then_some(self.now),
        ];
        next.into_iter().flatten().min()
    }

    /// Outages, other MTUs and aborts, each once or twice.
    fn disturb(&mut self) {
        let at = |world: &Self, step| world.steps == step;
        if self.trouble.outage && at(self, 40) {
            let span = Micros::from_millis(self.random.u64(100..5_000));
            self.to_server.silent_until = self.now + span;
            self.to_client.silent_until = self.now + span;
        }
        if self.trouble.change_of_mtu && (at(self, 60) || at(self, 300)) {
            let mtu = if at(self, 60) { 600 } else { 1500 };
            self.client
                .stack
                .configure(network(1, mtu), self.now)
                .unwrap();
            if let Server::Naive(_) = self.server {
                let mac = Mac([2, 0, 0, 0, 0, 2]);
                let address = [10, 0, 0, 2].into();
                self.client.stack.set_neighbour(0, address, mac, self.now);
            }
        }
        if self.trouble.aborts && at(self, 100) {
            let Host {
                stack,
                applications,
            } = &mut self.client;
            applications.abort(stack, self.now);
        }
    }

    fn deliver(&mut self) {
        while let Some(frame) = self.to_server.receive(self.now) {
            match &mut self.server {
                Server::Stack(host) => host.on_frame(&frame, self.now),
                Server::Naive(naive) => naive.on_frame(&frame, self.now),
            }
        }
        while let Some(frame) = self.to_client.receive(self.now) {
            self.client.on_frame(&frame, self.now);
        }
    }

    fn work(&mut self) {
        self.client.work(self.now);
        match &mut self.server {
            Server::Stack(host) => host.work(self.now),
            Server::Naive(naive) => naive.on_timeout(self.now),
        }
    }

    fn transmit(&mut self) {
        for frame in self.client.frames(self.now) {
            self.to_server.send(frame, self.now);
        }
        let frames = match &mut self.server {
            Server::Stack(host) => host.frames(self.now),
            Server::Naive(naive) => naive.frames(),
        };
        for frame in frames {
            self.to_client.send(frame, self.now);
        }
    }

    /// Whether the server has answered with cookies.
    fn has_baked(&self) -> bool {
        match &self.server {
            Server::Stack(host) => host.stack.counters().tcp.sync_cookies_sent > 0,
            Server::Naive(_) => false,
        }
    }

    /// All connections have ended, and all bytes have come.
    fn check(&self) {
        assert!(self.client.stack.is_empty());
        let is_disturbed = self.trouble.aborts;
        let may_expire =
            self.may_lose && self.has_baked() && self.now.since(self.start) > COOKIE_LIFE;
        for conversation in self.client.applications.conversations.values() {
            let is_sound = is_disturbed
                || conversation.is_complete()
                || conversation.is_late()
                || self.may_lose && conversation.is_unreachable()
                || may_expire && conversation.is_refused();
            assert!(is_sound, "{conversation:?}");
        }
        match &self.server {
            Server::Stack(host) => {
                // Without keep-alive, a host that only waits does not learn of a lost reset.
                assert!(is_disturbed || host.stack.is_empty());
                for conversation in host.applications.conversations.values() {
                    // The client can have given up before it was established.
                    let was_nothing = self.may_lose && conversation.received == 0;
                    let has_all = conversation.received == self.totals.0;
                    let expected = is_disturbed || was_nothing || has_all;
                    assert!(expected, "{conversation:?}");
                }
            }
            Server::Naive(naive) => {
                let result = naive.result();
                assert!(is_disturbed || result == Some(self.totals.0), "{result:?}");
            }
        }
    }
}

impl Server {
    fn is_busy(&self) -> bool {
        match self {
            Self::Stack(host) => host.applications.is_busy(),
            Self::Naive(_) => false,
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Stack(host) => host.stack.next_timeout(),
            Self::Naive(naive) => naive.next_timeout(),
        }
    }
}

impl Host {
    fn on_frame(&mut self, frame: &[u8], now: Instant) {
        let state = ChecksumState::Verify;
        let _verdict = self
            .stack
            .on_frame(frame, state, now, &mut self.applications);
    }

    fn work(&mut self, now: Instant) {
        self.stack.on_timeout(now, &mut self.applications);
        self.applications.turn(&mut self.stack, now);
    }

    fn frames(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut buffer = [0; 1_600];
        let mut frames = Vec::new();
        while let Some(outgoing) =
            self.stack
                .poll_transmit(&mut buffer, now, &mut self.applications)
        {
            let frame = &buffer[..outgoing.length];
            Frame::parse(frame, ChecksumState::Verify).expect("a well-formed frame");
            frames.push(frame.to_vec());
        }
        frames
    }
}
