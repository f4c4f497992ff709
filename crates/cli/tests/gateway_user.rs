//! The rights of a gateway that serves, and what it can still do with them. Needs what
//! `support/gateway.rs` needs, setpriv(1), python3, systemd-analyze(1) and
//! systemd-sysusers(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use saiga_process::account::Account;
use saiga_process::proc::field;
use saiga_trials::snapshot::ip;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::program::Ended;
use support::{Installation, said, text};
use world::{SETTINGS, World, in_namespace, network};

/// CAP_NET_ADMIN and CAP_NET_BIND_SERVICE, bits 12 and 10 (linux/capability.h).
const KEPT: &str = "0000000000001400";
/// The same with CAP_BPF, bit 39.
const KEPT_WITH_BPF: &str = "0000008000001400";
const NONE: &str = "0000000000000000";

/// `saiga` as the user daemon, with options of setpriv(1).
fn as_daemon(saiga: &Installation, options: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "daemon", "--regid", "daemon", "--clear-groups"])
        .args(options)
        .arg(saiga.path("bin/saiga"))
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", saiga.path(""));
    command
}

/// `/proc/PID/task/TID/status` of each thread.
fn threads(gateway: &Ended) -> Vec<String> {
    let folder = format!("/proc/{}/task", gateway.pid());
    fs::read_dir(folder)
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap())
        .collect()
}

/// Every thread has the user daemon, these rights, and the filter.
fn check_threads(gateway: &Ended, kept: &str, bounding: Option<&str>) {
    let daemon = Account::named("daemon").unwrap();
    let threads = threads(gateway);
    assert!(threads.len() > 1, "a worker besides the main thread");
    for status in threads {
        let expected = [
            ("Uid", format!("{0}\t{0}\t{0}\t{0}", daemon.uid)),
            ("Gid", format!("{0}\t{0}\t{0}\t{0}", daemon.gid)),
            ("Groups", String::new()),
            ("CapInh", NONE.to_owned()),
            ("CapPrm", kept.to_owned()),
            ("CapEff", kept.to_owned()),
            ("CapAmb", NONE.to_owned()),
            ("NoNewPrivs", "1".to_owned()),
            ("Seccomp", "2".to_owned()),
        ];
        for (name, value) in expected {
            assert_eq!(
                field(&status, name),
                Some(value.as_str()),
                "{name}: {status}"
            );
        }
        if let Some(bounding) = bounding {
            assert_eq!(field(&status, "CapBnd"), Some(bounding), "{status}");
        }
    }
}

/// A client with a port below 1024, for which the gateway needs a right of its own.
fn ping_from_a_low_port(world: &World) {
    let client = "import socket\n\
                  s = socket.socket()\n\
                  s.settimeout(20)\n\
                  s.bind(('10.9.0.2', 900))\n\
                  s.connect(('10.9.0.1', 6379))\n\
                  s.sendall(b'PING\\r\\n')\n\
                  print(s.recv(7))";
    let out = said(&mut world.program(&["python3", "-c", client]));
    assert_eq!(out.stdout, "b'+PONG\\r\\n'\n", "{}", out.stderr);
}

#[test]
fn a_gateway_gives_up_root_and_serves() {
    in_namespace(|| {
        let world = World::new();
        let _server = world.redis(true);
        let gateway = world.gateway();
        check_threads(&gateway, KEPT, Some(KEPT));
        ping_from_a_low_port(&world);
        world.client("redis-benchmark -h 10.9.0.1 -n 3000 -c 5 -q -t get");

        // The library does not take the filter for a sandbox, and the peer knows the new user.
        let pid = gateway.pid().to_string();
        let out = said(&mut world.saiga.saiga(&["status", &pid, "--json"]));
        let status: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        assert!(status["upgrades"].as_u64() > Some(0), "{}", out.stdout);

        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

/// As systemd starts it with User= and AmbientCapabilities=. What it got besides, it gives up. The
/// right to open /dev/net/tun stands for the mode that udev gives to this file.
#[test]
fn a_gateway_that_was_never_root_serves() {
    in_namespace(|| {
        let world = World::new();
        let _server = world.redis(false);
        let rights = "+net_admin,+net_bind_service,+dac_override";
        let rights = ["--inh-caps", rights, "--ambient-caps", rights];
        let up = ["gateway", "up", "--config"];
        let gateway = world.gateway_by(as_daemon(&world.saiga, &rights, &up));
        check_threads(&gateway, KEPT, None);
        ping_from_a_low_port(&world);
        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

/// With the capabilities of the unit.
#[test]
fn a_gateway_that_was_never_root_carries_connections() {
    in_namespace(|| {
        let world = World::with("[outgoing]\nprefixes = \"10.9.0.0/24\"\n");
        let rights = "+net_admin,+net_bind_service,+net_raw,+bpf,+dac_override";
        let rights = ["--inh-caps", rights, "--ambient-caps", rights];
        let up = ["gateway", "up", "--config"];
        let gateway = world.gateway_by(as_daemon(&world.saiga, &rights, &up));
        check_threads(&gateway, KEPT_WITH_BPF, None);
        let _server = world.redis_on_client();
        let out = said(Command::new("redis-cli").args(["-h", "10.9.0.2", "ping"]));
        assert_eq!(out.stdout, "PONG\n", "{}", out.stderr);
        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

#[test]
fn what_cannot_be_given_up_or_is_missing_is_said_before_anything_changes() {
    in_namespace(|| {
        let before = network();
        let saiga = Installation::bare();
        let file = saiga.path("gateway.toml");
        let settings = |user: &str| format!("{SETTINGS}[runtime]\nuser = \"{user}\"\n");
        for (user, expected) in [
            ("saiga-none", "useradd --system --no-create-home"),
            ("nobody", "65534"),
        ] {
            fs::write(&file, settings(user)).unwrap();
            let mut up = saiga.saiga(&["gateway", "up", "--inside", "--config"]);
            let out = said(up.arg(&file));
            assert_eq!(out.code, Some(2), "{user}");
            assert!(out.stderr.contains(expected), "{}", out.stderr);
            let out = said(saiga.saiga(&["gateway", "check", "--config"]).arg(&file));
            assert_eq!(out.code, Some(1), "{user}");
            assert!(out.stdout.contains(expected), "{}", out.stdout);
        }

        for (user, expected) in [
            ("daemon", "this process lacks CAP_NET_ADMIN, for rules"),
            ("bin", "only root can become the user bin"),
        ] {
            fs::write(&file, settings(user)).unwrap();
            let mut up = as_daemon(&saiga, &[], &["gateway", "up", "--inside", "--config"]);
            let out = said(up.arg(&file));
            assert_eq!(out.code, Some(2), "{user}");
            assert!(out.stderr.contains(expected), "{}", out.stderr);
        }
        assert_eq!(network(), before);
        let links = ip("link");
        assert!(!links.contains("tap0"), "{links}");
    });
}

#[test]
fn systemd_accepts_the_unit_and_the_user() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let saiga = Installation::bare();
    let unit = fs::read_to_string(root.join("saiga-gateway.service")).unwrap();
    let binary = saiga.path("bin/saiga");
    let unit = unit.replace("/usr/local/bin/saiga", text(&binary));
    let file = saiga.path("saiga-gateway.service");
    fs::write(&file, unit).unwrap();
    let out = said(Command::new("systemd-analyze").args(["verify", text(&file)]));
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));

    let users = saiga.path("usr/lib/sysusers.d");
    for folder in [&users, &saiga.path("etc")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::copy(root.join("sysusers.conf"), users.join("saiga.conf")).unwrap();
    let place = format!("--root={}", text(&saiga.path("")));
    let out = said(Command::new("systemd-sysusers").arg(place));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let made = fs::read_to_string(saiga.path("etc/passwd")).unwrap();
    assert!(made.starts_with("saiga:x:"), "{made}");
    assert!(made.contains("nologin"), "{made}");
}
