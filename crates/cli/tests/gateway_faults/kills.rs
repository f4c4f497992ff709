//! kill -9 of the server, the gateway or a client, at moments from a seed, while another client
//! talks to another server behind the same gateway.

use std::process::Command;
use std::time::Duration;

use fastrand::Rng;
use saiga_trials::census::Census;
use saiga_trials::scale::{by_scale, seed};
use saiga_trials::snapshot::sysctls;
use saiga_trials::witness::await_true;

use crate::bystander::Bystander;
use crate::device::assert_served;
use crate::support::program::Ended;
use crate::world::{
    Gateway, Link, OTHER_PORT, PORT, SERVER, Wire, World, in_world, rules, sockets,
};

/// Descriptors of a gateway with one client beyond those of a fresh one: the client's anchor, and
/// links to servers, dead ones included. A leak grows beyond it in a few rounds.
const DESCRIPTORS: usize = 12;
/// Private memory of the gateway's buffers and of the library, in KiB.
const MEMORY_KIB: u64 = 64 << 10;
/// Both ends of the bystander's anchor.
const SOCKETS: usize = 2;
/// Exchanges before a kill, at most, and after it, at least.
const BEFORE: u64 = 30;
const AFTER: u64 = 10;

/// What is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Server,
    Gateway,
    Client,
}

/// The processes that are killed and started again.
struct Site<'a> {
    world: &'a World,
    server: Ended,
    /// Absent while the next one has not started.
    gateway: Option<Gateway>,
    bystander: Bystander,
}

#[test]
fn killed_processes_leave_nothing_and_others_go_on() {
    let mut rng = Rng::with_seed(seed(61));
    for wire in Wire::ALL {
        kill_on(wire, &mut rng);
    }
}

fn kill_on(wire: Wire, rng: &mut Rng) {
    in_world(wire, Link::Veth, |world| {
        world.close_kernel_side();
        let (network, values) = (world.network(), sysctls());
        let other = world.redis(OTHER_PORT, &[]);
        let server = world.redis(PORT, &[]);
        let gateway = world.gateway();
        let mut site = Site {
            world,
            server,
            gateway: Some(gateway),
            bystander: world.bystander(SERVER, rng.u64(..)),
        };
        let (with_gateway, before) = (rules(), Census::of(other.pid()).unwrap());
        for round in 0..by_scale(10, 1000) {
            let victim = [Victim::Server, Victim::Gateway, Victim::Client][rng.usize(..3)];
            println!("{wire:?}, round {round}: {victim:?}");
            site.round(victim, rng, round);
            assert_eq!(rules(), with_gateway, "round {round}");
        }
        let Site {
            gateway, bystander, ..
        } = site;
        println!("the bystander has lost {} connections", bystander.end());
        world.stop(gateway.unwrap());
        assert_eq!(world.network(), network);
        assert_eq!(sysctls(), values);
        // Links to gateways that were killed.
        let after = Census::of(other.pid()).unwrap();
        before.assert_no_growth(&after, 4, MEMORY_KIB, "kills, at the other server");
    });
}

impl Site<'_> {
    /// A load on the server, a kill in its midst, and the start of what was killed.
    fn round(&mut self, victim: Victim, rng: &mut Rng, round: u32) {
        let mut load = self.load();
        self.bystander.progress(rng.u64(1..=BEFORE));
        match victim {
            Victim::Server => {
                self.server.kill();
                self.server = self.world.redis(PORT, &[]);
            }
            Victim::Gateway => self.kill_gateway(),
            Victim::Client => load.kill(),
        }
        self.bystander.progress(AFTER);
        drop(load);
        drop(assert_served(self.world));
        self.await_rest(round);
    }

    /// A client with eight connections that writes and reads without a pause.
    fn load(&self) -> Ended {
        let mut command = Command::new("redis-benchmark");
        command
            .args(["-h", &SERVER.to_string(), "-p", &PORT.to_string()])
            .args(["-c", "8", "-P", "4", "-d", "1000", "-n", "100000000"])
            .args(["-q", "-t", "set,get"]);
        self.world.start_on_client(&mut command)
    }

    fn kill_gateway(&mut self) {
        self.bystander.begin_outage();
        self.world.kill(self.gateway.take().unwrap());
        self.assert_silent();
        self.gateway = Some(self.world.gateway());
        self.bystander.end_outage();
    }

    /// Without a gateway, a TAP device has no other end, and the kernel does not serve.
    fn assert_silent(&self) {
        let answer = self.world.connect(PORT, Duration::from_millis(100));
        assert!(answer.is_err(), "something answers: {answer:?}");
    }

    /// Waits until the gateway and the kernel have only what the bystander needs.
    fn await_rest(&self, round: u32) {
        let gateway = self.gateway.as_ref().unwrap();
        let is_at_rest = |now: &Census| {
            now.descriptors <= gateway.fresh.descriptors + DESCRIPTORS && sockets() <= SOCKETS
        };
        await_true(
            || is_at_rest(&gateway.census()),
            || {
                let (fresh, now) = (gateway.fresh, gateway.census());
                let sockets = sockets();
                format!("round {round}: {sockets} sockets; fresh {fresh:?}, now {now:?}")
            },
        );
        let (fresh, now) = (gateway.fresh, gateway.census());
        assert!(
            now.private_kib <= fresh.private_kib + MEMORY_KIB,
            "round {round}: fresh {fresh:?}, now {now:?}"
        );
    }
}
