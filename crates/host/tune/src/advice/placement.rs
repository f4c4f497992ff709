//! Where processes run. The planner of cores makes such sets; these are those of the procedures.

use saiga_topology::machine::{Cpu, Node};

use super::Entry;
use crate::about::Risk;
use crate::goal::{Engine, Role};
use crate::knob::Context;

const HOW: &str = "Cpus_allowed_list in /proc/PID/task/*/status.";
const MEMORY: &str = "numastat -p PID.";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "place.opengauss",
        text: "On 128 cores and 4 nodes, procedure 004 binds openGauss to 0-27,32-59,64-91,96-123 \
               (112 cores); interrupts use the other 4 of each node. A client on the same host \
               would share CPUs with the interrupts.",
        check: HOW,
        source: "procedure 004",
        risk: Risk::Restart,
        applies: |context| is_as_measured(context, Engine::OpenGauss),
    },
    Entry {
        id: "place.alternatives",
        text: "24 cores of each node (96) gave 1.03 M tpmC, 25 (100) 1.02 M; also 26 (104). The \
               difference is 1 %: measure it here.",
        check: HOW,
        source: "procedure 004",
        risk: Risk::Restart,
        applies: |context| is_as_measured(context, Engine::OpenGauss),
    },
    Entry {
        id: "place.client",
        text: "Bind the load generator to 0-19,32-51,64-83,96-115 (80 cores) if 48 interrupts use \
               the last 12 cores of each node. With 0-27,..., it shares 8 cores with interrupts \
               on 26-31,....",
        check: HOW,
        source: "procedure 004",
        risk: Risk::Restart,
        applies: |context| context.goal.role == Role::Client && is_128_on_4(context),
    },
    Entry {
        id: "place.interleave",
        text: "numactl --interleave=NODES spreads a shared buffer over the nodes of the server's \
               CPUs; memory of backends gets 10-20 % slower.",
        check: MEMORY,
        source: "procedure 004; A. Freund, 2024-10-23",
        risk: Risk::Restart,
        applies: |context| {
            let engines = [Engine::Postgres, Engine::OpenGauss];
            context.serves_any(&engines) && usable_nodes(context) > 1
        },
    },
    Entry {
        id: "place.thread_pool",
        text: "thread_pool_attr='812,4,(cpubind:0-27,...)': 812 = (128 - 16) * 7.25. The \
               documentation of openGauss says 3 to 5 threads for each core, 4096 at most.",
        check: "pg_settings.",
        source: "procedure 004; openGauss documentation; gs_perfconfig",
        risk: Risk::Restart,
        applies: |context| context.serves_any(&[Engine::OpenGauss]),
    },
    Entry {
        id: "place.wal_writer",
        text: "The openGauss documentation gives core 0 to the WAL writer (wal_writer_cpu=0) and \
               1-27,32-59,... to the server.",
        check: HOW,
        source: "openGauss documentation",
        risk: Risk::Restart,
        applies: |context| is_as_measured(context, Engine::OpenGauss),
    },
    Entry {
        id: "place.two_mysql",
        text: "Procedure 001 runs two servers with numactl -C 0-60 -i 0-3 and -C 67-127 -i 0-3, \
               interrupts on 61-66. Half of the memory is then remote: try -i 0,1 and -i 2,3.",
        check: MEMORY,
        source: "procedure 001",
        risk: Risk::Restart,
        applies: |context| is_as_measured(context, Engine::Mysql),
    },
    Entry {
        id: "place.one_node",
        text: "numactl -N NODE -m NODE mysqld binds CPUs and memory to one node, with other \
               nodes for other instances. The server is killed \
               when the node is full.",
        check: MEMORY,
        source: "procedure 003",
        risk: Risk::Restart,
        applies: |context| context.serves_any(&[Engine::Mysql]) && usable_nodes(context) > 1,
    },
    Entry {
        id: "place.binary",
        text: "The page cache of the server's binary should be on its node: IPC was 55 % higher. \
               saiga tune move-pages moves it while the server runs.",
        check: "N0=, N1= of the binary in /proc/PID/numa_maps.",
        source: "procedure 003",
        risk: Risk::Safe,
        applies: |context| context.serves() && usable_nodes(context) > 1,
    },
    Entry {
        id: "place.guests",
        text: "Bind virtual CPUs and memory of each guest to one node (numatune of libvirt).",
        check: "numastat -c qemu-kvm.",
        source: "procedure 003",
        risk: Risk::Restart,
        applies: |_| false,
    },
    Entry {
        id: "place.gazelle",
        text: "Gazelle of procedure 000 polls on 18,38,58,78 with 2048 MiB on each node; Redis of \
               002 on core 2 with 2400,0,0,0.",
        check: "num_cpus and socket_mem in lstack.conf.",
        source: "procedures 000 and 002",
        risk: Risk::Restart,
        applies: |_| false,
    },
];

/// Nodes with CPUs and memory that this process may use.
fn usable_nodes(context: &Context) -> usize {
    let limits = &context.machine.limits;
    let is_usable = |node: &&Node| {
        limits.nodes.contains(&node.id) && node.cpus.iter().any(|cpu| limits.cpus.contains(cpu))
    };
    context.machine.nodes.iter().filter(is_usable).count()
}

/// The shape of the machines of procedures 001 and 004. The numbers of CPUs are theirs.
fn is_128_on_4(context: &Context) -> bool {
    let machine = context.machine;
    let usable = |cpu: &&Cpu| cpu.is_online && machine.limits.cpus.contains(&cpu.id);
    machine.cpus.iter().filter(usable).count() == 128 && machine.nodes.len() == 4
}

fn is_as_measured(context: &Context, engine: Engine) -> bool {
    context.serves_any(&[engine]) && is_128_on_4(context)
}
