//! Plans of random hosts and goals: applied twice they are empty, undone they were never there.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use saiga_topology::machine::Machine;
use saiga_tune::goal::{Engine, Goal, Named, Placement, Role};
use saiga_tune::history::{history, managed};
use saiga_tune::journal::State;
use saiga_tune::plan::{Plan, plan};
use saiga_tune::readings::Readings;
use saiga_tune::undo::{Conflicts, undo};
use saiga_tune::verify::verify;

use crate::fake::{Fake, Journals, differences};
use crate::faults::apply_plan;
use crate::machines;

fn machine(name: &str) -> Machine {
    match name {
        "kunpeng" => machines::kunpeng(32),
        "epyc" => machines::epyc_nps4(),
        "xeon" => machines::xeon_smt(),
        "graviton" => machines::graviton(),
        _ => machines::small_vm(),
    }
}

/// Values that a host may have before; those that it does not have are left out.
fn before() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop::sample::subsequence(
        vec![
            ("/proc/sys/vm/swappiness", "1\n"),
            ("/proc/sys/vm/dirty_bytes", "4096000\n"),
            ("/proc/sys/vm/dirty_ratio", "0\n"),
            (
                "/sys/block/nvme0n1/queue/scheduler",
                "none mq-deadline kyber [bfq] \n",
            ),
            ("/sys/block/nvme0n1/queue/nr_requests", "77\n"),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]\n",
            ),
            ("/proc/irq/64/smp_affinity_list", "7\n"),
            ("/proc/irq/100/smp_affinity_list", "2\n"),
            ("receive ring of ens1f0np0", "4096 max 4096"),
            ("state of irqbalance.service", "inactive"),
            ("start of irqbalance.service at boot", "disabled"),
            ("/proc/sys/net/ipv4/ip_local_port_range", "10000\t60000\n"),
            (
                "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
                "30\n",
            ),
            (
                "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                "30\n",
            ),
        ],
        0..=14,
    )
}

fn named() -> impl Strategy<Value = Vec<Named>> {
    let texts = vec![
        "vm.swappiness=10",
        "vm.dirty_ratio=15",
        "vm.dirty_background_bytes=123456789",
        "hugepages.total=64",
        "hugepages.total=40000",
        "hugepages.node@node0-2048kB=7",
        "disk.scheduler=kyber",
        "disk.nr_requests=300",
        "disk.read_ahead_kb=333",
        "net.core.rps_sock_flow_entries=5000",
        "thp.enabled=always",
        "nic.queues=1",
        "nic.lro=on",
        "nic.tx_usecs=20",
        "kernel.perf_event_paranoid=1",
        "sched.steal=STEAL",
        "cpu.governor=powersave",
        "mkfs",
    ];
    let count = texts.len();
    prop::sample::subsequence(texts, 0..=count)
        .prop_map(|texts| texts.iter().map(|text| text.parse().unwrap()).collect())
}

fn goal() -> impl Strategy<Value = Goal> {
    let engines = [
        Engine::Mysql,
        Engine::Postgres,
        Engine::OpenGauss,
        Engine::Redis,
        Engine::None,
    ];
    let roles = [Role::Server, Role::Client, Role::Both];
    let engine = prop::sample::select(engines.to_vec());
    let role = prop::sample::select(roles.to_vec());
    (engine, role, named(), any::<bool>(), any::<bool>()).prop_map(
        |(engine, role, named, is_persistent, is_placed)| Goal {
            engine,
            role,
            named,
            without: Vec::new(),
            placement: if is_placed {
                placement()
            } else {
                Placement::default()
            },
            is_persistent,
            bindings: BTreeMap::new(),
        },
    )
}

/// Interrupts and devices of several machines: each has some of them.
fn placement() -> Placement {
    Placement {
        queues: [("enp3s0".to_owned(), 3), ("ens1f0np0".to_owned(), 8)].into(),
        irqs: [
            (64, vec![7]),
            (65, vec![8, 9]),
            (100, vec![1]),
            (41, vec![0]),
            (90, vec![1]),
        ]
        .into(),
        transmit: [(("ens5".to_owned(), 1), vec![3])].into(),
        receive: [(("eno1".to_owned(), 0), vec![2, 33])].into(),
    }
}

/// Writes that the kernel or a security module refuses, and values that do not stay.
fn traps() -> impl Strategy<Value = Vec<(&'static str, i32)>> {
    let all = vec![
        ("/proc/sys/vm/swappiness", libc::EPERM),
        ("/sys/kernel/debug/sched/features", libc::EPERM),
        ("/proc/sys/net/ipv4/tcp_tw_reuse", libc::EROFS),
        ("/sys/kernel/mm/transparent_hugepage/defrag", libc::EINVAL),
        ("combined queues of enp3s0", libc::EBUSY),
        ("/etc/sysctl.d/99-zz-saiga.conf", libc::ENOSPC),
        ("/proc/irq/65/smp_affinity_list", libc::EIO),
        ("/proc/sys/vm/zone_reclaim_mode", 0),
    ];
    prop::sample::subsequence(all, 0..=2)
}

fn plan_again(fake: &Fake, machine: &Machine, goal: &Goal, managed: BTreeSet<u32>) -> Plan {
    let readings = Readings::read(fake, machine, managed).unwrap();
    plan(machine, &readings, goal).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn undo_after_apply_is_identity(
        name in prop::sample::select(vec!["kunpeng", "epyc", "xeon", "graviton", "vm"]),
        before in before(),
        goal in goal(),
        traps in traps(),
    ) {
        let machine = machine(name);
        let mut fake = Fake::of(&machine);
        for (key, text) in before {
            if fake.values.contains_key(key) {
                fake.set(key, text);
            }
        }
        // The kernel keeps one of the two.
        if fake.raw("/proc/sys/vm/dirty_bytes") != "0\n" {
            fake.set("/proc/sys/vm/dirty_ratio", "0\n");
        } else if fake.raw("/proc/sys/vm/dirty_ratio") == "0\n" {
            fake.set("/proc/sys/vm/dirty_ratio", "20\n");
        }
        settle_hugepages(&mut fake);
        for (key, error) in traps {
            if error == 0 {
                fake.restless.insert(key.to_owned());
            } else {
                fake.refusals.insert(key.to_owned(), error);
            }
        }
        // Devices of another machine are unknown by name.
        let Ok(first) = plan(&machine, &fake.readings(&machine), &goal) else {
            return Ok(());
        };
        let old = fake.values.clone();
        let mut journals = Journals::beside(&fake);
        let text = first.to_toml().unwrap();
        prop_assert_eq!(&Plan::from_toml(&text).unwrap(), &first);
        let mut stages: Vec<_> = first.steps.iter().map(|step| step.stage).collect();
        prop_assert!(stages.is_sorted());
        stages.dedup();
        let applied = apply_plan(&first, &machine, &mut fake, &mut journals);
        match applied {
            Ok(id) => {
                if first.needs_confirmation() {
                    // A file may be refused; then everything is undone.
                    let _ = saiga_tune::confirm::confirm(&id, &mut fake, &mut journals, 1001);
                }
                let state = history(&journals).unwrap()[0].state.clone();
                if state == Ok(State::Applied) {
                    prop_assert_eq!(verify(&id, &fake, &journals).unwrap(), vec![]);
                    let managed = managed(&journals, "first").unwrap();
                    let again = plan_again(&fake, &machine, &goal, managed);
                    prop_assert_eq!(&again.steps, &vec![]);
                }
                let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
                prop_assert!(report.is_complete, "{:#?}", report);
            }
            Err(_) if !fake.restless.is_empty() => {
                // A value that does not stay may be left as a conflict; all others are back.
                for key in fake.restless.clone() {
                    let text = old[&key].clone();
                    fake.set(&key, &text);
                }
                for id in saiga_tune::store::Store::ids(&journals).unwrap() {
                    undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
                }
            }
            Err(_) => {}
        }
        prop_assert_eq!(differences(&fake.values, &old), Vec::<String>::new());
    }
}

/// Makes the total the sum of the nodes.
fn settle_hugepages(fake: &mut Fake) {
    let mut sum = 0;
    for (key, text) in &fake.values {
        if key.starts_with("/sys/devices/system/node/") {
            sum += text.trim().parse::<u64>().unwrap();
        }
    }
    fake.set(
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        &format!("{sum}\n"),
    );
}
