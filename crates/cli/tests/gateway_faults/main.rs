//! `saiga gateway` under faults and attacks: servers under the library, and a client on another
//! host that checks each byte.
//!
//! `make test` runs a few rounds of each; `make soak` runs a thousand kills and longer attacks.
//! Needs root, /dev/net/tun, ip(8) with bridges, and what `tools/setup test` installs. Deliberately
//! absent: throughput under attack.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bystander;
mod clock;
mod databases;
mod device;
mod frames;
mod hostile;
mod kernel_programs;
mod kernel_side;
mod kills;
mod link;
mod local_user;
#[path = "../support/mod.rs"]
mod support;
mod topologies;
mod undo;
mod urgent;
mod world;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use fastrand::Rng;
use saiga_trials::scale::{by_scale, seed};

use support::program::Ended;
use support::{said, text};
use world::{Link, OTHER_PORT, SERVER, SERVER_V6, Wire, World, in_world};

/// Answers stay right when the path loses, doubles, reorders and corrupts packets, and the gateway
/// sends no faulty one.
#[test]
fn answers_are_right_over_a_faulty_path() {
    let mut rng = Rng::with_seed(seed(64));
    for wire in Wire::ALL {
        in_world(wire, Link::Faulty(rng.u64(..)), |world| {
            let _server = world.redis(OTHER_PORT, &[]);
            let gateway = world.gateway();
            let file = world.saiga.path("all.pcapng");
            let capture = capture(world, &file);
            let v4 = world.bystander(SERVER, rng.u64(..));
            let v6 = world.bystander(SERVER_V6, rng.u64(..));
            let exchanges = by_scale(40, 5_000);
            v4.progress(exchanges);
            v6.progress(exchanges);
            let faults = world.faulty.as_ref().unwrap().faults();
            println!("lost, doubled, late, corrupted: {faults:?}");
            assert!(faults.iter().all(|count| *count > 0), "{faults:?}");
            assert_eq!([v4.end(), v6.end()], [0, 0], "lost connections");
            capture.stop();
            check_capture(&file);
            world.stop(gateway);
        });
    }
}

/// A capture of all frames of the gateway, which has begun.
fn capture(world: &World, file: &Path) -> Ended {
    let words = ["gateway", "capture", "-w", text(file), "--config"];
    let mut command = world.saiga.saiga(&words);
    command.arg(world.settings()).stderr(Stdio::piped());
    let mut capture = Ended(command.spawn().unwrap());
    let mut lines = BufReader::new(capture.0.stderr.as_mut().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("capturing to"));
    capture
}

/// What the gateway has sent is well-formed; what it has received is not always.
fn check_capture(file: &Path) {
    // An error of ICMP quotes a faulty packet.
    let faults = "((_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0) && !icmp \
                  && !icmpv6 || icmp.checksum.status == 0 || icmpv6.checksum.status == 0)";
    let sent = "frame.packet_flags_direction == 2";
    let received = "frame.packet_flags_direction == 1";
    assert_eq!(found(file, &format!("{faults} && {sent}")), "");
    // The filter finds what it looks for.
    assert_ne!(found(file, &format!("{faults} && {received}")), "");
    assert_ne!(
        found(file, &format!("tcp.checksum.status == 1 && {sent}")),
        ""
    );
}

/// The frames that tshark finds, with all checksums verified.
fn found(file: &Path, filter: &str) -> String {
    let mut tshark = Command::new("tshark");
    for check in ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE"] {
        tshark.args(["-o", check]);
    }
    let out = said(tshark.args(["-n", "-r", text(file), "-Y", filter]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    out.stdout
}
