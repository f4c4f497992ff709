//! `saiga diagnose` on a machine of four CPUs in two NUMA nodes: faults that an ordinary host does
//! not have, or that would change settings of the whole host.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

use crate::machine::{Image, Machine, said};
use crate::slow_disk::SlowDisk;

/// The machine takes four minutes on an idle host.
const LIMIT: Duration = Duration::from_secs(1200);
/// `mkfs.xfs` makes no file system below 300 MiB.
const DISK: u64 = 512 << 20;
/// Programs of this host that the machine has beside its own.
const PROGRAMS: [&str; 3] = ["redis-server", "redis-cli", "redis-benchmark"];

/// The console of one boot, in which all faults are planted one after the other.
static CONSOLE: LazyLock<String> = LazyLock::new(|| {
    let images = ["data", "swap"].map(|name| Image { name, bytes: DISK });
    let machine = Machine::new(
        &["guest", "services"],
        &PROGRAMS,
        &[("script.sh", include_str!("planted.sh"))],
        images.into(),
    );
    let slow = SlowDisk::new(DISK);
    let mut options = vec!["-m", "2048", "-smp", "4,sockets=2,cores=2"];
    let slow_drive = slow.drive("slow");
    for (option, value) in [
        ("-object", "memory-backend-ram,id=m0,size=1G"),
        ("-object", "memory-backend-ram,id=m1,size=1G"),
        ("-numa", "node,nodeid=0,cpus=0-1,memdev=m0"),
        ("-numa", "node,nodeid=1,cpus=2-3,memdev=m1"),
        ("-drive", &slow_drive),
        ("-device", "nvme,drive=data,serial=DATA"),
        ("-device", "nvme,drive=swap,serial=SWAP"),
        ("-device", "nvme,drive=slow,serial=SLOW"),
    ] {
        options.extend([option, value]);
    }
    let console = machine.boot("", &options, LIMIT);
    // A failure is explained by what came before it.
    println!("{console}");
    console
});

/// The first finding about a planted fault must be from one of these rules, and name the
/// bottleneck.
#[track_caller]
fn assert_first(fault: &str, rules: &[&str], bottleneck: &str) {
    let (output, status) = said(&CONSOLE, &format!("{fault}\n"), 0);
    assert_eq!(status, "1", "{fault}: {output}");
    let verdict: Value = serde_json::from_str(output).expect(output);
    let first = &verdict["findings"][0];
    // For `tools/confusion`.
    println!("planted {fault}: {}", first["rule"]);
    let rule = first["rule"].as_str().unwrap();
    assert!(rules.contains(&rule), "{verdict:#}");
    let named = first["bottleneck"].as_str().unwrap();
    assert!(named.contains(bottleneck), "{verdict:#}");
}

/// The server filled its memory on node 0 and was then moved to the CPUs of node 1.
#[test]
fn memory_on_the_other_node() {
    assert_first("remote memory", &["remote-memory"], "redis-server");
}

/// Somebody else has read the program's file on node 0 before the server started on node 1.
#[test]
fn code_on_the_other_node() {
    assert_first("remote code", &["remote-text"], "redis-server");
}

/// One CPU handles the packets of all, and another program runs on it.
#[test]
fn a_hog_on_the_cpu_of_the_packets() {
    assert_first("hog on the interrupt CPU", &["softirq"], "CPU 3");
}

/// The log of the server is on a disk that takes 20 ms to flush its cache.
#[test]
fn a_slow_fsync() {
    assert_first("slow fsync", &["flush"], "nvme");
}

/// The cgroup of the server leaves it half of the memory that its data need. Waiting for memory and
/// reading from swap are two sides of that.
#[test]
fn less_memory_than_data() {
    assert_first("swap", &["swap", "memory-pressure"], "memory");
}
