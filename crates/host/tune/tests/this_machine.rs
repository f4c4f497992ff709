//! The machine on which the tests run, as root: every file knob that it has is turned to a near
//! value and back, through a real journal. `tools/test` runs no other test at the same time. All
//! values are harmless and hold for a moment, for other users of the machine.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use saiga_process::root::Root;
use saiga_topology::machine::{Cpu, Disk, HugePages, Irq, Limits, Machine, Nic, Node, System};
use saiga_topology::read::bracketed;
use saiga_tune::apply::{OnFailure, Options, apply};
use saiga_tune::confirm::confirm;
use saiga_tune::form::cpus;
use saiga_tune::goal::{Goal, Named};
use saiga_tune::host::LiveHost;
use saiga_tune::identity::Identity;
use saiga_tune::knobs::registry;
use saiga_tune::plan::plan;
use saiga_tune::readings::{Reading, Readings};
use saiga_tune::store::{Directory, Store};
use saiga_tune::target::Target;
use saiga_tune::undo::{Conflicts, undo};
use saiga_tune::verify::verify;

/// Counters, and what other programs change all the time.
const RESTLESS: [&str; 14] = [
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/binfmt_misc/",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/fs/quota/",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/",
    "/proc/sys/kernel/tainted",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/vm/compact_memory",
    "/proc/sys/vm/stat_refresh",
];

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn names(dir: &str) -> Vec<String> {
    Root::host().names(dir).unwrap_or_default()
}

fn irqs() -> Vec<Irq> {
    let numbers = names("/proc/irq")
        .into_iter()
        .filter_map(|name| name.parse().ok());
    let irq = |number: u32| Irq {
        number,
        actions: names(&format!("/proc/irq/{number}"))
            .into_iter()
            .filter(|name| Path::new(&format!("/proc/irq/{number}/{name}")).is_dir())
            .collect(),
        affinity: None,
        effective: None,
        node: None,
        count: 0,
    };
    numbers.map(irq).collect()
}

fn hugepages(folder: &str) -> Vec<HugePages> {
    let size = |name: &String| {
        let kib: u64 = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let page_bytes = kib * 1024;
        Some(HugePages {
            page_bytes,
            total: 0,
            free: 0,
        })
    };
    names(&format!("{folder}/hugepages"))
        .iter()
        .filter_map(size)
        .collect()
}

fn nics() -> Vec<Nic> {
    let is_device = |name: &String| Path::new(&format!("/sys/class/net/{name}/device")).exists();
    let queues = |name: &str, kind: &str| {
        let queues = names(&format!("/sys/class/net/{name}/queues"));
        let count = queues
            .iter()
            .filter(|queue| queue.starts_with(kind))
            .count();
        u32::try_from(count).unwrap()
    };
    let nic = |name: String| Nic {
        rx_queues: queues(&name, "rx-"),
        tx_queues: queues(&name, "tx-"),
        name,
        driver: None,
        device: None,
        node: None,
        is_up: true,
        speed_mbit_s: None,
        mtu: None,
        irqs: Vec::new(),
    };
    names("/sys/class/net")
        .into_iter()
        .filter(is_device)
        .map(nic)
        .collect()
}

fn disks() -> Vec<Disk> {
    let has_scheduler = |name: &String| {
        let list = text(format!("/sys/block/{name}/queue/scheduler"));
        bracketed(&list).is_some_and(|_| list.contains(' '))
    };
    let disk = |name: String| Disk {
        name,
        model: None,
        driver: None,
        device: None,
        node: None,
        bytes: 0,
        is_rotational: false,
        queues: 1,
        scheduler: None,
        requests: None,
        irqs: Vec::new(),
        mounts: Vec::new(),
    };
    let all = names("/sys/block").into_iter();
    // One is enough; loop devices of other tests come and go.
    let real = all.filter(|name| !name.starts_with("loop") && has_scheduler(name));
    real.take(1).map(disk).collect()
}

/// What the knobs need to know of this machine.
fn machine() -> Machine {
    let cpu = |id: u32| Cpu {
        id,
        is_online: true,
        is_isolated: false,
        node: 0,
        package: None,
        die: None,
        cluster: None,
        core: id,
        performance: None,
    };
    let online = cpus(&text("/sys/devices/system/cpu/online")).unwrap();
    let free_bytes = saiga_process::proc::bytes(&text("/proc/meminfo"), "MemFree").unwrap();
    let node = |name: String| {
        let id: u32 = name.strip_prefix("node")?.parse().ok()?;
        Some(Node {
            id,
            cpus: Vec::new(),
            memory_bytes: 1 << 40,
            free_bytes,
            distances: Vec::new(),
            hugepages: hugepages(&format!("/sys/devices/system/node/{name}")),
        })
    };
    Machine {
        system: System {
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: text("/proc/sys/kernel/osrelease"),
            cpu_model: None,
            page_bytes: 4096,
            command_line: text("/proc/cmdline"),
            product: None,
            virtualisation: None,
            iommu: false,
            hugepages: hugepages("/sys/kernel/mm"),
            transparent_hugepages: None,
        },
        cpus: online.into_iter().map(cpu).collect(),
        caches: Vec::new(),
        nodes: names("/sys/devices/system/node")
            .into_iter()
            .filter_map(node)
            .collect(),
        nics: nics(),
        disks: disks(),
        irqs: irqs(),
        limits: Limits {
            cpus: Vec::new(),
            nodes: Vec::new(),
            cpu_quota: None,
            memory_bytes: None,
            cgroup_version: None,
        },
    }
}

/// A harmless value that differs from the current one.
fn near(knob: &str, instance: Option<&str>, raw: &str) -> Option<String> {
    let raw = raw.trim();
    let words: Vec<&str> = raw.split_whitespace().collect();
    let number = || words.first()?.parse::<u64>().ok();
    let other = |one: &str, two: &str| if raw == one { two } else { one }.to_owned();
    Some(match knob {
        // One page of 2 MiB more; other sizes may not be free.
        "hugepages.total" if instance == Some("2048kB") => (number()? + 1).to_string(),
        "hugepages.node" if instance?.ends_with("-2048kB") => (number()? + 1).to_string(),
        // Not that of the ratio: both would be a contradiction.
        "vm.dirty_bytes" => (2_u64 << 30).to_string(),
        "vm.dirty_background_bytes" => (1_u64 << 30).to_string(),
        "thp.enabled" | "thp.defrag" if bracketed(raw)? == "madvise" => "always".to_owned(),
        "thp.enabled" | "thp.defrag" => "madvise".to_owned(),
        "disk.scheduler" if bracketed(raw)? == "none" => "mq-deadline".to_owned(),
        "disk.scheduler" => "none".to_owned(),
        "disk.read_ahead_kb" => number()?.checked_sub(4)?.to_string(),
        // Without a scheduler, the device's own queue is the limit.
        "disk.nr_requests" => (number()? / 4).to_string(),
        "net.ipv4.ip_local_port_range" => format!("{} {}", number()? + 1, words.get(1)?),
        "net.ipv4.ip_local_reserved_ports" if raw.is_empty() => "1".to_owned(),
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => {
            format!(
                "{} {} {}",
                number()?,
                words.get(1)?,
                words.get(2)?.parse::<u64>().ok()? + 4096
            )
        }
        "kernel.sem" => format!("{} {}", number()? + 1, words.get(1..)?.join(" ")),
        "net.core.rps_sock_flow_entries" | "nic.rps_flow_cnt" => other("0", "1000"),
        "nic.rps_cpus" => other("0", "1"),
        "nic.gro_flush_timeout" => other("0", "1"),
        "nic.napi_defer_hard_irqs" => other("0", "1"),
        "workqueue.cpumask" | "irq.default_smp_affinity" => other("1", "3"),
        "irq.affinity" => other("0", "0-1"),
        "cpu.idle_governor" => {
            let list = text("/sys/devices/system/cpu/cpuidle/available_governors");
            list.split(' ').find(|word| *word != raw)?.to_owned()
        }
        "kernel.numa_balancing"
        | "kernel.sched_autogroup_enabled"
        | "thp.khugepaged_defrag"
        | "vm.overcommit_memory"
        | "vm.zone_reclaim_mode"
        | "vm.oom_dump_tasks" => other("0", "1"),
        "net.ipv4.tcp_tw_reuse" => other("1", "2"),
        "net.core.busy_poll" | "net.core.busy_read" => other("0", "1"),
        "disk.rq_affinity" => other("1", "2"),
        "disk.nomerges" => other("0", "1"),
        "kernel.perf_event_paranoid" => other("2", "1"),
        // Already the highest on most hosts.
        "kernel.shmmax" | "kernel.shmall" | "fs.file-max" | "vm.swappiness" => {
            (number()? - 1).to_string()
        }
        "fs.nr_open"
        | "fs.aio-max-nr"
        | "net.core.somaxconn"
        | "net.core.netdev_max_backlog"
        | "net.core.rmem_max"
        | "net.core.wmem_max"
        | "net.ipv4.tcp_fin_timeout"
        | "net.ipv4.tcp_max_syn_backlog"
        | "net.ipv4.tcp_max_tw_buckets"
        | "vm.stat_interval"
        | "vm.min_free_kbytes" => (number()? + 1).to_string(),
        _ => return None,
    })
}

/// Named values for every file knob of which this machine has the file.
fn near_values(machine: &Machine, readings: &Readings, skip: &str) -> Vec<Named> {
    let mut named = Vec::new();
    for knob in registry().filter(|knob| knob.id != skip) {
        for place in knob.places(machine) {
            let Some(Reading::Raw(raw)) = readings.values.get(&place.target) else {
                continue;
            };
            let is_file = matches!(place.target, Target::File { .. });
            let value = near(knob.id, place.instance.as_deref(), raw).filter(|_| is_file);
            named.extend(value.map(|value| Named {
                knob: knob.id.to_owned(),
                instance: place.instance.clone(),
                value,
            }));
        }
    }
    named
}

fn read_tree(dir: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if RESTLESS.iter().any(|restless| name.starts_with(restless)) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => read_tree(&path, files),
            Ok(_) => {
                // Some can only be written.
                if let Ok(bytes) = fs::read(&path) {
                    files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            Err(_) => {}
        }
    }
}

/// All of `/proc/sys`, and every file that a knob writes or disturbs.
fn snapshot(machine: &Machine) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    read_tree(Path::new("/proc/sys"), &mut files);
    for knob in registry() {
        for place in knob.places(machine) {
            for target in std::iter::once(&place.target).chain(&place.coupled) {
                if let Target::File { path, .. } = target
                    && let Ok(bytes) = fs::read(path)
                {
                    files.insert(path.clone(), String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
    }
    files
}

/// Applies near values for all file knobs but one, and undoes them. Returns the knobs that changed.
fn there_and_back(machine: &Machine, skip: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Directory::lock(dir.path()).unwrap();
    let mut host = LiveHost::new(Root::host());
    let readings = Readings::read(&host, machine, [].into()).unwrap();
    let goal = Goal {
        named: near_values(machine, &readings, skip),
        ..Goal::default()
    };
    let plan = plan(machine, &readings, &goal).unwrap();
    let options = Options {
        on_failure: OnFailure::Undo,
        confirm_within_s: Some(60),
        now_s: 0,
    };
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let found = Identity::of(machine);
    let applied = apply(&plan, &found, &mut host, &mut store, options, &mut started);
    let applied = applied.unwrap_or_else(|error| panic!("{error}"));
    confirm(&applied.id, &mut host, &mut store, 1).unwrap();
    let differences = verify(&applied.id, &host, &store);
    // Undone before anything is asserted.
    let report = undo(&applied.id, &mut host, &mut store, Conflicts::Report).unwrap();
    assert!(report.is_complete, "{report:#?}");
    assert_eq!(report.journal_error, None);
    assert_eq!(differences.unwrap(), []);
    assert_eq!(store.ids().unwrap().len(), 1);
    let mut knobs: Vec<String> = plan
        .steps
        .iter()
        .map(|step| step.target.to_string())
        .collect();
    knobs.retain(|name| !applied.managed.iter().any(|managed| name.contains(managed)));
    knobs
}

/// Held by one run of this test at a time, whichever checkout it is from: two would restore each
/// other's values.
fn lock() -> fs::File {
    let path = std::env::temp_dir().join("saiga-tune-this-machine.lock");
    let file = fs::File::create(path).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    file
}

#[test]
fn every_file_knob_of_this_machine_is_undone_to_the_byte() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let _lock = lock();
    let machine = machine();
    let before = snapshot(&machine);
    // Each of the two changes the other.
    let mut knobs = there_and_back(&machine, "hugepages.node");
    knobs.extend(there_and_back(&machine, "hugepages.total"));
    knobs.sort();
    knobs.dedup();
    let after = snapshot(&machine);
    let differs = before.iter().filter(|(path, text)| {
        let changed = after.get(*path) != Some(text);
        // What another test changes at the same time is not constant either.
        changed && fs::read(path).is_ok_and(|now| String::from_utf8_lossy(&now) != **text)
    });
    let differs: Vec<_> = differs
        .map(|(path, text)| (path, text, after.get(path)))
        .collect();
    assert!(differs.is_empty(), "{differs:#?}");
    assert!(knobs.len() >= 40, "only {} values: {knobs:#?}", knobs.len());
    println!("{} values, {} files compared", knobs.len(), before.len());
}
