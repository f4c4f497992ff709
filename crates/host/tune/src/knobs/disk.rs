//! Queues of block devices. A new scheduler resets `nr_requests` and the write-back throttle.

use saiga_topology::machine::{Disk, Machine};

use crate::about::Stage;
use crate::form::Form;
use crate::knob::{Context, Domain, Knob, Place};
use crate::target::Target;

const DOC: &str = "Linux block/queue-sysfs.rst";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "disk.scheduler",
        purpose: "order of requests to a disk",
        reason: "An NVMe disk sorts requests itself; a scheduler costs a lock for each.",
        source: "procedure 004",
        effect: "less CPU at high request rates; fairness between processes is lost",
        default: "none for an NVMe disk of a server",
        domain: Domain::Listed,
        propose: |context, place| {
            let is_nvme = place.instance().starts_with("nvme");
            (context.serves() && is_nvme).then(|| "none".to_owned())
        },
        check: listed,
        ..Knob::by(schedulers, Stage::Disk)
    },
    Knob {
        id: "disk.nr_requests",
        purpose: "requests that a queue of a disk holds",
        reason: "A scheduler has more requests to sort and merge.",
        source: DOC,
        effect: "more throughput of many writers; higher latency",
        domain: Domain::Number(4, 65_536),
        ..Knob::by(
            |machine| files(machine, "nr_requests", &Form::Words),
            Stage::Disk,
        )
    },
    Knob {
        id: "disk.read_ahead_kb",
        purpose: "bytes that are read ahead of a sequential reader, in KiB",
        reason: "Sequential scans become faster; random reads through the page cache become slower.",
        source: DOC,
        effect: "sign varies with the share of scans; none with O_DIRECT",
        domain: Domain::Number(0, 1 << 20),
        ..Knob::by(read_ahead, Stage::Disk)
    },
    Knob {
        id: "disk.rq_affinity",
        purpose: "CPU on which a request is completed: 1 the core's group, 2 the same CPU",
        reason: "The data of the request is in the cache of the CPU that submitted it.",
        source: DOC,
        effect: "sign varies; none if each CPU has a queue of its own",
        domain: Domain::Number(0, 2),
        ..Knob::by(
            |machine| files(machine, "rq_affinity", &Form::Words),
            Stage::Disk,
        )
    },
    Knob {
        id: "disk.nomerges",
        purpose: "whether requests are merged: 0 all ways, 1 simple ways, 2 not",
        reason: "Random pages do not merge; the search costs CPU.",
        source: DOC,
        effect: "less CPU for random I/O; more requests for sequential I/O",
        domain: Domain::Number(0, 2),
        ..Knob::by(
            |machine| files(machine, "nomerges", &Form::Words),
            Stage::Disk,
        )
    },
];

fn file(disk: &Disk, name: &str, form: Form) -> Target {
    let path = format!("/sys/block/{}/queue/{name}", disk.name);
    Target::file(path, form)
}

fn files(machine: &Machine, name: &str, form: &Form) -> Vec<Place> {
    let place = |disk: &Disk| Place::new(&disk.name, file(disk, name, form.clone()));
    machine.disks.iter().map(place).collect()
}

fn read_ahead(machine: &Machine) -> Vec<Place> {
    let page_kib = machine.system.page_bytes / 1024;
    files(machine, "read_ahead_kb", &Form::MultipleOf(page_kib.max(1)))
}

fn schedulers(machine: &Machine) -> Vec<Place> {
    let place = |disk: &Disk| Place {
        coupled: vec![
            file(disk, "nr_requests", Form::Words),
            file(disk, "wbt_lat_usec", Form::Words),
        ],
        ..Place::new(&disk.name, file(disk, "scheduler", Form::Bracketed))
    };
    machine.disks.iter().map(place).collect()
}

fn listed(context: &Context, place: &Place, value: &str) -> Result<(), String> {
    let raw = context.readings.raw(&place.target).unwrap_or_default();
    let words: Vec<&str> = raw
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']))
        .collect();
    if words.contains(&value) {
        return Ok(());
    }
    Err(format!("the disk has {}", words.join(", ")))
}
