//! `saiga tune` on four nodes with a network device, an NVMe drive and systemd, over three boots.

use std::sync::LazyLock;
use std::time::Duration;

use crate::machine::{Image, Machine, is_arm, said};

/// A boot takes half a minute on an idle host, and a minute for Arm.
const LIMIT: Duration = Duration::from_secs(600);
const PERSISTENT: [&str; 3] = [
    "/etc/sysctl.d/99-zz-saiga.conf",
    "/etc/systemd/system/saiga-tune.service",
    "/etc/udev/rules.d/99-zz-saiga.rules",
];

/// The consoles of the three boots, which all tests read.
struct Consoles {
    first: String,
    second: String,
    third: String,
}

static CONSOLES: LazyLock<Consoles> = LazyLock::new(|| {
    let machine = Machine::new(
        &["guest", "services"],
        &[],
        &[
            ("init", include_str!("root.sh")),
            ("script.sh", include_str!("tune.sh")),
            ("etc/machine-id", "4242424242424242424242424242424a\n"),
            (
                "etc/systemd/system/tune.target",
                include_str!("tune.target"),
            ),
            (
                "etc/systemd/system/tune.service",
                include_str!("tune.service"),
            ),
        ],
        vec![
            Image {
                name: "root",
                bytes: 1 << 30,
            },
            Image {
                name: "second",
                bytes: 64 << 20,
            },
        ],
    );
    let boot = |name: &str, memory: &[&str]| {
        let words = format!("systemd.unit=tune.target systemd.show_status=0 boot={name}");
        let options = options(memory);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        machine.boot(&words, &options, LIMIT)
    };
    let all = ["m0", "m1", "m2", "m3"];
    let consoles = Consoles {
        first: boot("first", &all),
        second: boot("second", &all),
        // Node 3 has lost its memory.
        third: boot("third", &all[..3]),
    };
    // A failure is explained by what came before it.
    let Consoles {
        first,
        second,
        third,
    } = &consoles;
    println!("{first}\n{second}\n{third}");
    consoles
});

/// Four nodes of a Kunpeng 920; for Arm with two packages and clusters of four cores, as there. The
/// devices are at node 2. The second disk asks the kernel to place its interrupts.
fn options(memory: &[&str]) -> Vec<String> {
    let (smp, cores) = if is_arm() {
        ("32,sockets=2,clusters=4,cores=4", 8)
    } else {
        ("8,sockets=4,cores=2", 2)
    };
    let mut options = vec![
        "-m".to_owned(),
        (memory.len() * 512).to_string(),
        "-smp".to_owned(),
        smp.to_owned(),
    ];
    let mut add = |option: &str, value: String| options.extend([option.to_owned(), value]);
    for node in 0..4 {
        let cpus = format!("{}-{}", cores * node, cores * (node + 1) - 1);
        let own = memory.get(node).map_or(String::new(), |name| {
            add("-object", format!("memory-backend-ram,id={name},size=512M"));
            format!(",memdev={name}")
        });
        add("-numa", format!("node,nodeid={node},cpus={cpus}{own}"));
    }
    for (from, to, distance) in [
        (0, 1, 16),
        (0, 2, 32),
        (0, 3, 33),
        (1, 2, 25),
        (1, 3, 32),
        (2, 3, 16),
    ] {
        add("-numa", format!("dist,src={from},dst={to},val={distance}"));
    }
    add(
        "-netdev",
        "tap,id=net,queues=8,script=no,downscript=no".to_owned(),
    );
    for device in [
        "pxb-pcie,id=bridge,bus_nr=128,bus=pcie.0,numa_node=2",
        "pcie-root-port,id=port0,bus=bridge,chassis=1,slot=0",
        "pcie-root-port,id=port1,bus=bridge,chassis=2,slot=1",
        "virtio-net-pci,bus=port0,netdev=net,mq=on,vectors=18,romfile=",
        "nvme,bus=port1,drive=root,serial=ROOT",
        "virtio-blk-pci,bus=pcie.0,drive=second,num-queues=2",
    ] {
        add("-device", device.to_owned());
    }
    options
}

/// The output of a section whose command succeeded.
fn done<'a>(console: &'a str, name: &str) -> &'a str {
    let (output, status) = said(console, &format!("{name}\n"), 0);
    assert_eq!(status, "0", "{name}: {output}\n{console}");
    output
}

/// The output of a section, and the exit status of its command.
fn section<'a>(console: &'a str, name: &str) -> (&'a str, &'a str) {
    said(console, &format!("{name}\n"), 0)
}

/// `value` for each of the 17 interrupts of the network device: one of its configuration, and two
/// of each queue.
fn all(value: &str) -> String {
    [value; 17].join(" ") + "\n"
}

/// Where the plans put the interrupts: on the last CPU of each node, one node after the other.
fn placed() -> String {
    let cpus = if is_arm() {
        ["7", "15", "23", "31"]
    } else {
        ["1", "3", "5", "7"]
    };
    let cpus = cpus.iter().cycle().take(17);
    cpus.copied().collect::<Vec<_>>().join(" ") + "\n"
}

fn contains(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn the_topology_has_nodes_distances_and_devices() {
    let topology = done(&CONSOLES.first, "topology");
    contains(
        topology,
        &[
            if is_arm() {
                "32 CPUs, 2 packages, 4 NUMA nodes"
            } else {
                "8 CPUs, 4 packages, 4 NUMA nodes"
            },
            "from node 0  10  16  32  33\n",
            "from node 1  16  10  25  32\n",
            "from node 2  32  25  10  16\n",
            "from node 3  33  32  16  10\n",
        ],
    );
    let (_, node) = topology.split_once("Node 2 ").unwrap();
    let (node, _) = node.split_once("Node 3 ").unwrap();
    contains(node, &["NIC    eth0: virtio_net", "disk   nvme0n1: "]);
    contains(node, &["8 queues\n", "17 interrupts "]);
}

/// The firmware describes packages and clusters, and no caches.
#[test]
fn the_topology_has_the_clusters_of_a_kunpeng() {
    let topology = done(&CONSOLES.first, "topology");
    if !is_arm() {
        contains(topology, &["  each node: 2 cores"]);
        return;
    }
    contains(topology, &["  each node: 8 cores in 2 clusters of 4\n"]);
    let named = |line: &&str| line.starts_with("Package ") || line.starts_with("  Node ");
    let places: Vec<&str> = topology.lines().filter(named).collect();
    let (first, second) = places.split_at(3);
    assert_eq!(first[1..], ["  Node 0   CPUs 0-7", "  Node 1   CPUs 8-15"]);
    let expected = ["  Node 2   CPUs 16-23", "  Node 3   CPUs 24-31"];
    assert_eq!(second[1..], expected);
}

/// With four queues: the interrupt of the configuration and two of each queue are where the plans
/// put them. The driver keeps the others, which no queue uses, and no plan places them.
#[track_caller]
fn assert_placed_for_four_queues(nic: &str) {
    let nine = |text: &str| {
        text.split_whitespace()
            .take(9)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(nine(nic), nine(&placed()));
}

#[test]
fn interrupts_are_placed_confirmed_and_put_back() {
    let console = &CONSOLES.first;
    let plan = done(console, "plan placed");
    contains(plan, &["the kernel places this interrupt itself"]);
    let applied = done(console, "apply placed");
    contains(applied, &["only the kernel places this interrupt"]);
    assert_eq!(done(console, "nic placed"), placed());
    done(console, "confirm placed");
    assert_eq!(
        done(console, "verify placed"),
        "all values are as planned\n"
    );
    // The interrupt that refused is known in this boot.
    let (again, status) = section(console, "plan again");
    assert_eq!(status, "1", "{again}");
    contains(again, &["the kernel places this interrupt itself"]);
    done(console, "undo placed");
    assert_eq!(done(console, "diff placed"), "");
}

/// The driver sets all affinities when the number of queues changes.
#[test]
fn a_change_of_queues_moves_no_interrupt_for_good() {
    let console = &CONSOLES.first;
    assert_eq!(done(console, "nic by hand"), all("6"));
    assert_ne!(done(console, "nic reset"), all("6"));
    done(console, "apply queues");
    assert_eq!(done(console, "queues"), "4\n");
    assert_placed_for_four_queues(done(console, "nic queues"));
    done(console, "confirm queues");
    done(console, "verify queues");
    done(console, "undo queues");
    assert_eq!(done(console, "diff queues"), "");
}

#[test]
fn a_plan_that_nobody_confirms_is_undone() {
    let console = &CONSOLES.first;
    for name in ["timer", "killed", "half", "again"] {
        done(console, &format!("wait {name}"));
        assert_eq!(done(console, &format!("diff {name}")), "", "{name}");
    }
    done(console, "wait refused");
}

#[test]
fn a_confirmed_plan_stays() {
    let console = &CONSOLES.first;
    for name in ["confirm", "verify", "undo"] {
        done(console, &format!("{name} confirmed"));
    }
    done(console, "watched");
    done(console, "watch ends");
    assert_placed_for_four_queues(done(console, "nic confirmed"));
}

#[test]
fn the_page_cache_of_a_running_program_moves() {
    let console = &CONSOLES.first;
    let row = |name| {
        let output = done(console, name);
        let row = output.lines().find(|line| line.contains("/root/server"));
        row.unwrap().split_once("iB ").unwrap().1.trim().to_owned()
    };
    assert_eq!(row("move"), "3: 100 %  0: 100 %");
    assert!(!done(console, "move").contains("did not move"), "{console}");
    assert_eq!(row("move again"), "0: 100 %  0: 100 %");
    contains(done(console, "maps before"), &[" N3="]);
    let after = done(console, "maps after");
    assert!(!after.contains(" N3="), "{after}");
    assert_eq!(section(console, "move nowhere").1, "2");
    done(console, "server");
    assert_eq!(done(console, "said"), "the server read more\n");

    let (refusal, status) = section(&CONSOLES.third, "no memory");
    assert_eq!(status, "2");
    contains(refusal, &["node 3 has no memory; nodes with memory: 0-2"]);
}

#[test]
fn a_persistent_plan_is_there_after_a_restart_and_ends_with_its_undo() {
    let Consoles { first, second, .. } = &*CONSOLES;
    assert_eq!(done(first, "diff own"), "");
    assert_eq!(done(first, "files unconfirmed"), "");
    done(first, "confirm persistent");
    for path in PERSISTENT {
        contains(done(first, "files"), &[path]);
    }
    contains(
        done(first, "sysctl"),
        &[
            "kernel.numa_balancing = 0\n",
            "vm.dirty_bytes = 268435456\n",
            "vm.swappiness = 5\n",
        ],
    );
    assert_eq!(done(second, "failed units"), "");
    assert_eq!(done(second, "unit"), "active\n");
    assert_eq!(done(second, "queues at boot"), "4\n");
    assert_placed_for_four_queues(done(second, "nic at boot"));
    assert_eq!(
        done(second, "verify at boot"),
        "all values are as planned\n"
    );
    done(second, "undo persistent");
    assert_eq!(done(second, "files after"), "");
    assert_eq!(section(second, "unit after").0, "not-found\n");
    assert_eq!(done(second, "diff persistent"), "");
}

#[test]
fn an_application_that_is_killed_with_its_machine_is_undone() {
    let console = &CONSOLES.third;
    done(console, "undo crash");
    let state = done(console, "state").trim_end();
    let is_finished = state.ends_with(" undone") || state.ends_with("nothing was changed");
    assert!(is_finished, "{state}");
    assert_eq!(done(console, "files"), "");
    assert_eq!(done(console, "diff crash"), "");
}
