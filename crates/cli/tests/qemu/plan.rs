//! `saiga streams check --plan`: its commands on a drive, `check` afterwards, and the undo.

use std::time::Duration;

use serde_json::Value;

use crate::machine::{self, Image, said};

/// The machine takes two minutes on an idle host.
const LIMIT: Duration = Duration::from_secs(1200);
/// The parts of MySQL in the order of their namespaces, which have handles 0 to 5.
const PARTS: [&str; 6] = ["doublewrite", "redo", "undo", "temporary", "log", "data"];
const GIB: u64 = 1 << 30;

/// A drive of 16 GiB with one namespace, and, detached, the namespaces that the plan creates.
fn drive() -> (Vec<Image>, Vec<String>) {
    let mut images = Vec::new();
    let mut devices = vec![
        "nvme-subsys,id=s0,fdp=on,fdp.runs=64M,fdp.nrg=1,fdp.nruh=8".to_owned(),
        "nvme,subsys=s0,serial=PLACED".to_owned(),
    ];
    for (number, name, gib, more) in [
        // The undo creates it with the whole drive.
        (1, "n1", 16, ",detached=on,fdp.ruhs=0"),
        (2, "n2", 1, ",detached=on,fdp.ruhs=1"),
        (3, "n3", 1, ",detached=on,fdp.ruhs=2"),
        (4, "n4", 1, ",detached=on,fdp.ruhs=3"),
        (5, "n5", 1, ",detached=on,fdp.ruhs=4"),
        (6, "n6", 11, ",detached=on,fdp.ruhs=5"),
        (7, "n7", 16, ""),
        (8, "n8", 1, ",detached=on,fdp.ruhs=1"),
    ] {
        let bytes = gib * GIB;
        images.push(Image { name, bytes });
        devices.push(format!(
            "nvme-ns,drive={name},nsid={number},logical_block_size=4096,physical_block_size=4096{more}"
        ));
    }
    images.push(Image {
        name: "plain",
        bytes: 4 * GIB,
    });
    devices.push("nvme,drive=plain,serial=PLAIN".to_owned());
    (images, devices)
}

fn run() -> String {
    let (images, devices) = drive();
    let server = include_str!("server.sh");
    let programs = [
        ("script.sh", include_str!("plan.sh")),
        ("plan/nvme", include_str!("nvme.sh")),
        ("plan/systemctl", server),
        ("plan/server", server),
    ];
    machine::run(&programs, images, &devices, LIMIT)
}

/// Bytes written to each part and through its handle, while the server wrote to one part.
fn seen(console: &str, written: &str) -> Vec<(String, u64, u64)> {
    let (said, status) = said(console, &format!("wrote {written}\n"), 0);
    assert_eq!(status, "0", "{console}");
    let answer: Value = serde_json::from_str(said).expect(said);
    let parts = answer["handles"]["parts"].as_array().expect(said);
    let rows = parts.iter().zip(0..).map(|(part, number)| {
        assert_eq!(part["handle"], number, "{said}");
        let name = part["part"].as_str().unwrap().to_owned();
        let bytes = |field| part[field].as_u64().unwrap();
        (name, bytes("written_bytes"), bytes("handle_bytes"))
    });
    rows.collect()
}

#[test]
fn a_plan_is_carried_out_verified_and_undone() {
    let console = run();
    let check = |more: &str, index| {
        let command = format!("saiga streams check /srv/db --rules mysql{more}\n");
        said(&console, &command, index)
    };
    let (before, status) = check("", 0);
    assert_eq!(status, "1", "{console}");
    assert!(
        before.starts_with("hints stop at the block layer on /srv/db"),
        "{before}"
    );

    let (after, status) = check("", 1);
    assert_eq!(status, "0", "{console}");
    let expected = "the parts of the server go to FDP namespaces of their own on /srv/db (xfs on ";
    assert!(after.starts_with(expected), "{after}");
    let (user, status) = said(&console, "setpriv", 0);
    assert_eq!(status, "1", "{console}");
    // The kernel numbers the controllers in any order.
    let drive = if after.contains("(xfs on nvme0") {
        "nvme0"
    } else {
        "nvme1"
    };
    let expected = format!("this user may not open /dev/{drive}n1: run as root");
    assert!(
        user.starts_with("the parts of the server may go to ") && user.contains(&expected),
        "{user}"
    );
    assert_eq!(check(" --plan", 0).1, "2", "{console}");
    for written in PARTS {
        for (part, bytes, through_handle) in seen(&console, written) {
            // The file system may write its log at any time.
            let expected = if part == written {
                8 << 20..9 << 20
            } else {
                0..1 << 20
            };
            assert!(expected.contains(&bytes), "{written}, {part}: {bytes}");
            assert_eq!(bytes, through_handle, "{written}, {part}");
        }
    }
    let (shared, status) = check("", 2);
    assert_eq!(status, "1", "{console}");
    let expected = ", which holds no part, share reclaim unit handle 1 of ";
    assert!(
        shared.contains(&format!(": redo ({drive}n2) and {drive}n")) && shared.contains(expected),
        "{shared}"
    );

    for compared in [
        "diff -r --no-dereference /other/expected",
        "diff /tmp/expected",
    ] {
        assert_eq!(said(&console, compared, 0), ("", "0"), "{console}");
    }
}
