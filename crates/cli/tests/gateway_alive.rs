//! `saiga gateway` on a host where other programs take its rules, routes and devices: it puts them
//! back, or ends and says why. Needs what `support/gateway.rs` needs.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use saiga_trials::snapshot::ip;
use saiga_trials::witness::await_true;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::program::Ended;
use world::{Talk, Wire, World, in_namespace, network};

/// A gateway and what it has said so far.
struct Gateway(Ended, Arc<Mutex<String>>);

impl Gateway {
    fn new(world: &World) -> Self {
        let mut up = world.saiga.saiga(&["gateway", "up", "--config"]);
        up.stderr(Stdio::piped());
        let mut gateway = world.gateway_by(up);
        let lines = BufReader::new(gateway.0.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&said);
        thread::spawn(move || lines.for_each(|line| *to.lock().unwrap() += &line.unwrap()));
        Self(gateway, said)
    }

    /// Waits until the gateway says this.
    fn says(&self, expected: &str) {
        let said = || self.1.lock().unwrap().clone();
        await_true(|| said().contains(expected), said);
    }
}

/// A connection from before goes on, and a new one begins.
#[test]
fn connections_outlive_programs_that_take_rules_and_routes() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(false);
        let gateway = Gateway::new(&world);
        let mut talk = Talk::new(world.on_client("redis-cli -h 10.9.0.1"));
        for (taken, expected) in [
            (
                "-4 rule del pref 100",
                "has removed or changed rule pref 100 iif lo from 10.9.0.1 ipproto tcp sport 6379",
            ),
            (
                "-4 route flush table 79",
                "has removed or changed route local 0.0.0.0/0 table 79: put back",
            ),
            (
                "link set saigal down",
                "has removed or changed route local ::/0 table 79: put back",
            ),
            (
                "address del 10.9.0.1/24 dev veth0",
                "veth0 has lost 10.9.0.1: new connections to it are not served",
            ),
            (
                "address add 10.9.0.1/24 dev veth0",
                "veth0 has 10.9.0.1: it is served",
            ),
        ] {
            ip(taken);
            gateway.says(expected);
            if taken.contains("del 10.9.0.1/24") {
                continue;
            }
            talk.ping();
            for server in ["10.9.0.1", "fd09::1"] {
                assert_eq!(
                    world.client(&format!("redis-cli -h {server} ping")),
                    "PONG\n"
                );
            }
        }
        drop(talk);
        gateway.0.stop();
        assert_eq!(network(), world.before);
    });
}

/// What is taken cannot be put back.
#[test]
fn a_gateway_without_its_device_ends_with_the_reason() {
    for (wire, is_here, taken, expected) in [
        (
            Wire::Tap,
            true,
            "saigal",
            "has removed the TUN device saigal",
        ),
        (
            Wire::Xdp,
            true,
            "saigal",
            "has removed the TUN device saigal",
        ),
        (
            Wire::Xdp,
            true,
            "veth0",
            "network interface veth0 was removed",
        ),
        (
            Wire::Tap,
            false,
            "tap0",
            "network interface tap0 was removed",
        ),
    ] {
        in_namespace(|| {
            let world = World::over(wire);
            let _server = world.redis(false);
            let mut gateway = Gateway::new(&world);
            let _talk = Talk::new(world.on_client("redis-cli -h 10.9.0.1"));
            let delete = format!("link delete {taken}");
            if is_here {
                ip(&delete)
            } else {
                world.client(&format!("ip {delete}"))
            };
            gateway.says(expected);
            assert_eq!(gateway.0.0.wait().unwrap().code(), Some(2));
            assert_eq!(ip("rule").matches("lookup 79").count(), 0);
        });
    }
}

/// The lines that keep networkd from that are printed before.
#[test]
fn networkd_is_named_before_it_takes_anything() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let prepare = "mount -t tmpfs none /run; mkdir -p /run/systemd/netif
                       touch /run/systemd/netif/state";
        let out = world.second("check", prepare);
        let lines = "[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n";
        assert!(out.stdout.contains(lines), "{}{}", out.stdout, out.stderr);
    });
}

/// `check` finds what `up` refuses, and both name the owner of an XDP program.
#[test]
fn an_xdp_program_of_another_is_named() {
    in_namespace(|| {
        let world = World::made(Wire::Xdp, "[tcp]\nconnections = 100\n");
        let run = |verb| world.second(verb, "");
        assert_eq!(run("check").code, Some(0));
        let gateway = world.gateway();
        let link = ip("-d link show veth0");
        let id = link.split("prog/xdp id ").nth(1).unwrap();
        let id = id.split(' ').next().unwrap();
        let expected = format!("XDP program {id} \"saiga_xdp\" is attached to it: end the process");
        let (check, up) = (run("check"), run("up"));
        assert!(check.stdout.contains(&expected), "{}", check.stdout);
        assert!(up.stderr.contains(&expected), "{}", up.stderr);
        assert_eq!((check.code, up.code), (Some(1), Some(2)));
        gateway.stop();
    });
}

/// `up` serves these, and says with `check` what would go wrong later.
#[test]
fn what_goes_wrong_later_is_told_before() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let check = || world.second("check", "mount -t sysfs none /sys").stdout;
        ip("link set veth0 address 02:00:00:00:00:07");
        assert!(!check().contains("link-local"), "{}", check());
        ip("address del fe80::1/64 dev veth0");
        let advice = "address add fe80::ff:fe00:7/64 dev veth0";
        assert!(check().contains(advice), "{}", check());
        ip(advice);
        assert!(!check().contains("link-local"), "{}", check());
        ip("link set veth0 down");
        ip("link set veth0 name port0");
        ip("link add veth0 type bridge");
        ip("link set port0 master veth0");
        ip("address add 10.9.0.1/24 dev veth0");
        let merge = |value| {
            let done = Command::new("ethtool")
                .args(["-K", "port0", "gro", value])
                .status();
            assert!(done.unwrap().success());
        };
        merge("on");
        assert!(check().contains("ethtool -K port0 gro off"), "{}", check());
        merge("off");
        assert!(!check().contains("gro"), "{}", check());
    });
}

/// systemd-networkd in a network namespace, as on a host with udev. It takes all foreign rules when
/// it starts, and those of all devices but the gateway's: it is told to leave that one alone.
const NETWORKD: &str = r#"
mount -t sysfs none /sys
mount -t tmpfs none /run
mkdir -p /run/systemd/network /run/systemd/netif/{links,leases,lldp} /run/udev/data
chown -R systemd-network:systemd-network /run/systemd/netif
for link in /sys/class/net/*; do echo I:1 >/run/udev/data/n$(cat $link/ifindex); done
cp "$0" /run/systemd/network/00-saiga-gateway.network
printf '[Match]\nName=*\n[Network]\nKeepConfiguration=static\n' >/run/systemd/network/all.network
exec /lib/systemd/systemd-networkd
"#;
const UNMANAGED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/saiga-gateway.network"
);

#[test]
fn a_start_of_networkd_takes_no_connection() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(false);
        let gateway = Gateway::new(&world);
        let mut talk = Talk::new(world.on_client("redis-cli -h fd09::1"));
        let mut networkd = Command::new("unshare");
        networkd.args(["-m", "bash", "-ec", NETWORKD, UNMANAGED]);
        let quiet = networkd.stdout(Stdio::null()).stderr(Stdio::null());
        let networkd = Ended(quiet.spawn().unwrap());
        let by = format!("(\"systemd-network\", process {})", networkd.pid());
        gateway.says(&format!("another program {by} has removed or changed"));
        talk.ping();
        let link = ip("-o link show saigal");
        let index = link.split(':').next().unwrap();
        let state = format!(
            "/proc/{}/root/run/systemd/netif/links/{index}",
            networkd.pid()
        );
        let is_alone = || {
            let state = fs::read_to_string(&state).unwrap_or_default();
            state.contains("ADMIN_STATE=unmanaged")
        };
        await_true(is_alone, || "networkd manages saigal".to_owned());
        gateway.0.stop();
    });
}
