//! Scheduler and other settings of the kernel as a whole.

use saiga_topology::machine::Machine;
use saiga_topology::read::bracketed;

use crate::about::Risk;
use crate::form::Form;
use crate::goal::Engine;
use crate::knob::{Context, Domain, Knob, Place, Places};
use crate::target::Target;

/// The file moved with Linux 5.13.
const FEATURES: [&str; 2] = [
    "/sys/kernel/debug/sched/features",
    "/sys/kernel/debug/sched_features",
];

const SCHED_DOC: &str = "Linux admin-guide/sysctl/kernel.rst";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "kernel.numa_balancing",
        purpose: "whether the kernel moves tasks and pages between nodes by sampling page faults",
        reason: "A database that is bound to its nodes gains nothing from the samples and pays \
                 for the faults.",
        source: "procedure 004; futurewei-cloud.github.io/ARM-Datacenter",
        effect: "sysbench memory +19 %, threads +17 %, CPU 0, pipe -5 % (Kunpeng 920-6426, 5.6)",
        default: "0 instead of 1 for a server with CPUs on 2 nodes or more",
        domain: Domain::Number(0, 3),
        propose: |context, place| {
            let nodes = context.machine.nodes.iter();
            let with_cpus = nodes.filter(|node| !node.cpus.is_empty()).count();
            // 2 and more also move cold pages to nodes of slow memory.
            let is_balanced = context.number(place) == Some(1);
            (context.serves() && with_cpus > 1 && is_balanced).then(|| "0".to_owned())
        },
        ..Knob::kernel("/proc/sys/kernel/numa_balancing")
    },
    Knob {
        id: "sched.steal",
        purpose: "whether an idle CPU takes tasks from others of its node at once",
        reason: "Short tasks of many connections wait less on uneven run queues.",
        source: "procedures 000 and 001 (openEuler kernels; with sched_steal_node_limit=4)",
        effect: "not published alone",
        default: "STEAL for a MySQL server, if the kernel has the feature",
        domain: Domain::Words(&["STEAL", "NO_STEAL"]),
        at: Places::By(steal_places),
        propose: |context, place| {
            let raw = context.readings.raw(&place.target)?;
            let is_known = !place.target.form().value(raw).is_empty();
            (is_known && context.serves_any(&[Engine::Mysql])).then(|| "STEAL".to_owned())
        },
        check: |context, place, _| {
            unlocked(context)?;
            let raw = context.readings.raw(&place.target).unwrap_or_default();
            if place.target.form().value(raw).is_empty() {
                return Err("this kernel has no STEAL feature (openEuler kernels have)".to_owned());
            }
            Ok(())
        },
        ..Knob::kernel("")
    },
    Knob {
        id: "sched.migration_cost_ns",
        purpose: "how long a task counts as cache-hot, so that it is not moved to another CPU",
        reason: "A thread that moves less often finds its data in the cache.",
        source: "A-Tune profiles; moved from kernel.sched_migration_cost_ns to debugfs in 5.13",
        effect: "not published alone; sign varies",
        domain: Domain::Number(0, 1_000_000_000),
        check: |context, _, _| unlocked(context),
        ..Knob::kernel("/sys/kernel/debug/sched/migration_cost_ns")
    },
    Knob {
        id: "kernel.sched_autogroup_enabled",
        purpose: "whether tasks are scheduled by session",
        reason: "A server and its helpers in other sessions should get CPU time according to need.",
        source: SCHED_DOC,
        effect: "none for a service with CPUWeight or CPUQuota; otherwise the sign varies",
        default: "0 for a server",
        domain: Domain::Number(0, 1),
        propose: |context, _| context.serves().then(|| "0".to_owned()),
        ..Knob::kernel("/proc/sys/kernel/sched_autogroup_enabled")
    },
    Knob {
        id: "vm.stat_interval",
        purpose: "seconds between updates of memory statistics on every CPU",
        reason: "Fewer wake-ups on CPUs that only run the database.",
        source: "Linux admin-guide/sysctl/vm.rst",
        effect: "too small for a benchmark to show; monitoring sees older counters",
        domain: Domain::Number(1, 3600),
        ..Knob::kernel("/proc/sys/vm/stat_interval")
    },
    Knob {
        id: "workqueue.cpumask",
        purpose: "CPUs that run unbound work of the kernel",
        reason: "Work of file systems and drivers stays off the CPUs of the database.",
        source: "Linux core-api/workqueue.rst",
        effect: "not published; lower latency tail, less throughput if the CPUs are too few",
        domain: Domain::Mask,
        at: Places::By(workqueue_places),
        ..Knob::kernel("")
    },
    Knob {
        id: "kernel.perf_event_paranoid",
        purpose: "which users may read performance counters",
        reason: "Users other than root can measure a database.",
        source: SCHED_DOC,
        effect: "none on speed",
        risk: Risk::TradesSafety,
        domain: Domain::Words(&["-1", "0", "1", "2", "3", "4"]),
        ..Knob::kernel("/proc/sys/kernel/perf_event_paranoid")
    },
];

fn steal_places(_: &Machine) -> Vec<Place> {
    let form = || Form::Feature("STEAL".to_owned());
    let place = |path: &&str| Place {
        instance: None,
        target: Target::file(*path, form()),
        coupled: Vec::new(),
    };
    FEATURES.iter().map(place).collect()
}

fn workqueue_places(_: &Machine) -> Vec<Place> {
    vec![Place {
        instance: None,
        target: Target::file("/sys/devices/virtual/workqueue/cpumask", Form::Mask),
        coupled: Vec::new(),
    }]
}

/// Lockdown forbids all writes below debugfs.
fn unlocked(context: &Context) -> Result<(), String> {
    let lockdown = context.readings.lockdown.as_deref();
    match lockdown.and_then(bracketed) {
        None | Some("none") => Ok(()),
        Some(mode) => Err(format!(
            "kernel lockdown ({mode}) forbids writes to debugfs"
        )),
    }
}
