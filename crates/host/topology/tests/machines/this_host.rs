//! The development machine itself, compared with `/proc`.

use std::collections::BTreeMap;
use std::fs;

use saiga_process::root::Root;
use saiga_topology::process::{Process, ProcessError};
use saiga_topology::read::read;

#[test]
fn this_machine_agrees_with_proc() {
    let machine = read(&Root::host()).unwrap();
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online).count();
    assert_eq!(online, stat.lines().filter(is_cpu).count());
    assert!(machine.cores().values().map(Vec::len).sum::<usize>() == online);

    let nodes = fs::read_dir("/sys/devices/system/node").map_or(1, |names| {
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| {
                name.strip_prefix("node")
                    .is_some_and(|n| n.parse::<u32>().is_ok())
            })
            .count()
    });
    assert_eq!(machine.nodes.len(), nodes);
    // Less than in /proc/meminfo while the kernel still initialises memory.
    assert!(machine.nodes.iter().any(|node| node.memory_bytes > 1 << 20));

    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(machine.system.kernel, release.trim());
    assert_eq!(machine.system.architecture, std::env::consts::ARCH);
    let page = u64::try_from(rustix::param::page_size()).unwrap();
    assert_eq!(machine.system.page_bytes, page);
    assert!(
        machine
            .disks
            .iter()
            .flat_map(|disk| &disk.irqs)
            .all(|irq| machine.irq(*irq).is_some())
    );
    assert!(!machine.limits.cpus.is_empty());
}

/// Files of a container do not make a container of a virtual machine.
#[test]
fn this_process_is_in_a_container_only_with_namespaces_of_its_own() {
    let is = |kind: &str, number: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        link.to_str() == Some(&format!("{kind}:[{number}]"))
    };
    let virtualisation = read(&Root::host()).unwrap().system.virtualisation;
    let is_container = virtualisation.is_some_and(|kind| kind.contains("container"));
    match (is("pid", "4026531836"), is("cgroup", "4026531835")) {
        (false, _) => assert!(is_container),
        (true, true) => assert!(!is_container),
        // Only files tell.
        (true, false) => {}
    }
}

#[test]
fn this_process_has_threads_memory_and_text() {
    let process = Process::read(&Root::host(), std::process::id()).unwrap();
    assert!(
        process
            .threads
            .iter()
            .any(|thread| thread.tid == process.pid)
    );
    let machine = read(&Root::host()).unwrap();
    for thread in &process.threads {
        assert!(
            machine
                .cpu(thread.last_cpu)
                .is_some_and(|cpu| cpu.is_online),
            "{thread:?}"
        );
        assert!(!thread.allowed.is_empty());
    }
    assert!(process.resident_bytes > 0);
    if let Some(memory) = &process.memory {
        let sum: u64 = memory.values().sum();
        assert!(
            sum > 0
                && memory
                    .keys()
                    .all(|id| machine.nodes.iter().any(|node| node.id == *id))
        );
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let text = process.texts.iter().find(|text| text.path == own).unwrap();
        let total: BTreeMap<u32, u64> = text.bytes.clone();
        assert!(total.values().sum::<u64>() >= 4096, "{text:?}");
    }
}

#[test]
fn a_process_that_has_ended_is_an_error() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let error = Process::read(&Root::host(), pid).unwrap_err();
    assert!(matches!(error, ProcessError::NoProcess { .. }), "{error}");
    assert_eq!(error.to_string(), format!("process {pid} does not exist"));
    let error = Process::read(&Root::host(), 2).map(|_| ());
    assert!(error.is_err(), "kthreadd, or no process");
}
