//! Two hosts and two links, and the order in which things happen.

use saiga_path::Path;
use saiga_tcp::{CloseReason, Config, Instant, Settings, Start, reset_for};
use saiga_wire::SeqNum;

use crate::host::{Host, Packet, Task};
use crate::link::Link;

/// Everything that happens in one world at most. A world that needs more makes no progress.
const MOST_STEPS: u64 = 200_000;
/// Microseconds between two turns of an application that has something to do.
const TURN_US: u64 = 1000;

pub(crate) struct World {
    random: fastrand::Rng,
    now: Instant,
    client: Host,
    server: Option<Host>,
    /// For the server, until the SYN comes.
    server_task: Task,
    server_config: Config,
    settings: Settings,
    to_server: Link,
    to_client: Link,
    steps: u64,
}

impl World {
    pub(crate) fn new(
        mut random: fastrand::Rng,
        [to_server, to_client]: [Path; 2],
        has_errors: [bool; 2],
        [client_task, server_task]: [Task; 2],
        [client_config, server_config]: [Config; 2],
        settings: Settings,
    ) -> Self {
        let now = Instant(random.u64(0..u64::from(u32::MAX) * 2000));
        let start = start(&mut random, client_task.buffer);
        let mut client = Host::connect("client", client_task, client_config, start, now);
        client.set(settings);
        Self {
            to_server: Link::new(to_server, has_errors[0], random.fork()),
            to_client: Link::new(to_client, has_errors[1], random.fork()),
            random,
            now,
            client,
            server: None,
            server_task,
            server_config,
            settings,
            steps: 0,
        }
    }

    /// Runs until both applications have everything, and both connections have ended.
    pub(crate) fn run(mut self) -> Self {
        while !self.is_over() {
            self.steps += 1;
            assert!(self.steps < MOST_STEPS, "no progress: {}", self.shown());
            self.deliver();
            self.run_hosts();
            self.check();
            if !self.is_over() {
                self.advance();
            }
        }
        let (client, server) = (&self.client, self.server.as_ref().unwrap());
        assert_eq!(client.read, server.written(), "{}", self.shown());
        assert_eq!(server.read, client.written(), "{}", self.shown());
        for (host, peer) in [(client, server), (server, client)] {
            // The last acknowledgements can be lost so often that the peer has left TIME-WAIT.
            let is_in_order = host.end.is_none_or(|end| end == CloseReason::Finished);
            let is_late = peer.end == Some(CloseReason::Finished);
            assert!(is_in_order || is_late, "{}", self.shown());
        }
        self
    }

    fn is_over(&self) -> bool {
        self.client.is_done() && self.server.as_ref().is_some_and(Host::is_done)
    }

    /// Hands over all packets that have arrived.
    fn deliver(&mut self) {
        while let Some(packet) = self.to_server.receive(self.now) {
            if self.server.is_none() {
                let start = start(&mut self.random, self.server_task.buffer);
                let mut server = Host::accept(
                    "server",
                    self.server_task,
                    self.server_config.clone(),
                    start,
                    &packet.header,
                    self.now,
                );
                server.set(self.settings);
                self.server = Some(server);
                continue;
            }
            let Some(server) = &mut self.server else {
                continue;
            };
            if server.is_ended() {
                answer_for_none(&packet, &mut self.to_client, self.now);
            } else {
                server.on_packet(&packet, self.now);
            }
        }
        while let Some(packet) = self.to_client.receive(self.now) {
            if self.client.is_ended() {
                answer_for_none(&packet, &mut self.to_server, self.now);
            } else {
                self.client.on_packet(&packet, self.now);
            }
        }
    }

    /// Lets timers expire, applications run, and segments leave.
    fn run_hosts(&mut self) {
        let Self {
            random,
            now,
            client,
            server,
            to_server,
            to_client,
            ..
        } = self;
        let most = [1460, 9000, 65_000][random.usize(0..3)];
        client.on_timeout(*now);
        client.run_application(random, *now);
        while let Some(packets) = client.transmit(*now, most, server.as_ref()) {
            for packet in packets {
                let seq = packet.header.seq;
                if let Some(mss) = to_server.send(packet, *now) {
                    client.on_too_big(mss, seq, *now);
                }
            }
        }
        let Some(server) = server else { return };
        server.on_timeout(*now);
        server.run_application(random, *now);
        while let Some(packets) = server.transmit(*now, most, Some(client)) {
            for packet in packets {
                let seq = packet.header.seq;
                if let Some(mss) = to_client.send(packet, *now) {
                    server.on_too_big(mss, seq, *now);
                }
            }
        }
    }

    /// What must hold after each step.
    fn check(&mut self) {
        let now = self.now;
        for host in [Some(&mut self.client), self.server.as_mut()]
            .into_iter()
            .flatten()
        {
            if host.must_have_timer() {
                assert!(
                    host.next_timeout(now).is_some(),
                    "{} waits for ever",
                    host.name
                );
            }
            assert!(host.memory() <= 400_000);
        }
    }

    /// Moves the clock to the next thing that happens.
    fn advance(&mut self) {
        let now = self.now;
        let is_application_busy =
            self.client.has_work() || self.server.as_ref().is_some_and(Host::has_work);
        let turn = is_application_busy.then_some(Instant(now.0 + TURN_US));
        let timeouts = [
            self.client.next_timeout(now),
            self.server
                .as_mut()
                .and_then(|server| server.next_timeout(now)),
        ];
        let next = [
            self.to_server.next_arrival(),
            self.to_client.next_arrival(),
            turn,
        ]
        .into_iter()
        .chain(timeouts)
        .flatten()
        .min();
        let Some(next) = next else {
            panic!("nothing happens any more: {}", self.shown());
        };
        self.now = next.max(Instant(now.0 + 1));
    }

    fn shown(&self) -> String {
        let host = |host: &Host| {
            format!(
                "{}: {:?}, wrote {}, read {}, ended {:?}, {:?}\n",
                host.name,
                host.connection.state(),
                host.written(),
                host.read,
                host.end,
                host.counters
            )
        };
        let server = self.server.as_ref().map_or(String::new(), host);
        format!(
            "at {:?}, step {}, lost {} and {}\n{}{server}",
            self.now,
            self.steps,
            self.to_server.lost(),
            self.to_client.lost(),
            host(&self.client)
        )
    }
}

/// A host without the connection answers with a reset.
fn answer_for_none(packet: &Packet, back: &mut Link, now: Instant) {
    let length = u32::try_from(packet.payload.len()).unwrap();
    if let Some(header) = reset_for(&packet.header, length) {
        let reset = Packet {
            header,
            payload: vec![],
            is_congested: false,
        };
        let error = back.send(reset, now);
        assert_eq!(error, None, "a reset is small");
    }
}

fn start(random: &mut fastrand::Rng, buffer: u32) -> Start {
    Start {
        iss: SeqNum(random.u32(..)),
        timestamp_offset: random.u32(..),
        buffer,
    }
}
