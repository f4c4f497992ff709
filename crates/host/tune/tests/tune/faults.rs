//! A fault at every operation of apply, confirm and undo; then undo restores every byte.

use std::io;

use saiga_topology::machine::Machine;
use saiga_tune::apply::{ApplyError, OnFailure, Options, apply};
use saiga_tune::confirm::{confirm, undo_if_unconfirmed};
use saiga_tune::goal::{Engine, Goal, Placement, Role};
use saiga_tune::plan::Plan;
use saiga_tune::store::Store;
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::{Fake, Fault, Journals, differences, identity};
use crate::kernel::Values;
use crate::machines;

const NONE: [&str; 0] = [];
/// A service, and the drop-in that binds it.
pub(crate) const MARIADB: &str = "mariadb.service";
pub(crate) const BINDING: &str = "[Service]\nCPUAffinity=0-27\nNUMAPolicy=bind\nNUMAMask=0\n";
const FAULTS: [Fault; 4] = [Fault::Error, Fault::LateError, Fault::Kill, Fault::LateKill];

/// Every kind of target and of coupling.
pub(crate) fn goal() -> Goal {
    let named = [
        "vm.swappiness=1",
        "vm.dirty_bytes=1073741824",
        "vm.dirty_background_ratio=5",
        "hugepages.node@node1-2048kB=100",
        "hugepages.node@node2-2048kB=10",
        "disk.scheduler@nvme0n1=none",
        "disk.nr_requests=64",
        "disk.read_ahead_kb=1001",
        "net.core.rps_sock_flow_entries=1000",
        "net.ipv4.ip_local_port_range=10000 60000",
        "thp.enabled=never",
        "thp.defrag=never",
        "sched.steal=STEAL",
        "nic.gro=on",
        "nic.rx_usecs=512",
        "nic.rx_ring=4000",
    ];
    Goal {
        engine: Engine::None,
        role: Role::Server,
        named: named.iter().map(|text| text.parse().unwrap()).collect(),
        without: Vec::new(),
        placement: Placement {
            queues: [("enp3s0".to_owned(), 2)].into(),
            irqs: [(100, vec![28]), (101, vec![29, 30]), (103, vec![31])].into(),
            transmit: [(("enp3s0".to_owned(), 1), vec![0, 20])].into(),
            receive: [(("enp3s0".to_owned(), 0), vec![5])].into(),
        },
        is_persistent: true,
        bindings: [(MARIADB.to_owned(), BINDING.to_owned())].into(),
    }
}

/// A host right after its start.
fn booted(machine: &Machine) -> Fake {
    let mut fake = Fake::of(machine);
    fake.set(&format!("start of {MARIADB} at boot"), "enabled\n");
    fake
}

/// A host on which coupled values are not those that the kernel would choose.
pub(crate) fn host(machine: &Machine) -> Fake {
    let mut fake = booted(machine);
    // The kernel places this one itself, which its name does not tell.
    fake.managed.insert(103);
    fake.set("/proc/irq/100/smp_affinity_list", "3\n");
    fake.set("/sys/class/net/enp3s0/queues/rx-1/rps_cpus", "c\n");
    fake.set("/proc/sys/vm/dirty_background_bytes", "1000000\n");
    fake.set("/proc/sys/vm/dirty_background_ratio", "0\n");
    fake
}

/// As [`host`], with a driver that frees the interrupts of the queues that the plan removes.
pub(crate) fn freeing(machine: &Machine) -> Fake {
    let mut fake = host(machine);
    fake.frees_irqs = true;
    fake
}

pub(crate) fn options(confirm_within_s: Option<u64>) -> Options {
    Options {
        on_failure: OnFailure::Undo,
        confirm_within_s,
        now_s: 1000,
    }
}

pub(crate) fn apply_plan(
    plan: &Plan,
    machine: &Machine,
    fake: &mut Fake,
    journals: &mut dyn Store,
) -> Result<String, ApplyError> {
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let found = identity(machine);
    let applied = apply(
        plan,
        &found,
        fake,
        journals,
        options(Some(60)),
        &mut started,
    )?;
    Ok(applied.id)
}

/// Applies and confirms; the id if both succeeded.
fn apply_and_confirm(
    plan: &Plan,
    machine: &Machine,
    fake: &mut Fake,
    journals: &mut Journals,
) -> Result<String, String> {
    let id = apply_plan(plan, machine, fake, journals).map_err(|error| error.to_string())?;
    confirm(&id, fake, journals, 1010).map_err(|error| error.to_string())?;
    Ok(id)
}

/// Undoes what the journals hold, as a new process would.
fn undo_all(fake: &mut Fake, journals: &mut Journals, context: &str) {
    fake.operations.restart();
    for id in journals.ids().unwrap() {
        let report = undo(&id, fake, journals, Conflicts::Report).unwrap();
        assert!(report.is_complete, "{context}: {report:#?}");
        assert_eq!(report.journal_error, None, "{context}");
    }
}

#[test]
fn a_fault_at_any_operation_of_apply_is_undone() {
    let machine = machines::kunpeng(32);
    for before in [host(&machine), freeing(&machine)] {
        undone_after_any_fault(&machine, &before);
    }
}

fn undone_after_any_fault(machine: &Machine, before: &Fake) {
    let plan = before.plan(machine, &goal());
    assert!(plan.not_applicable.is_empty(), "{:#?}", plan.not_applicable);
    for fault in FAULTS {
        for at in 0.. {
            let (mut fake, context) = (before.fresh(), format!("{fault:?} at {at}"));
            let mut journals = Journals::beside(&fake);
            fake.operations.set_fault(at, fault);
            let done = apply_and_confirm(&plan, machine, &mut fake, &mut journals);
            let is_past_the_end = fake.operations.count() <= at;
            assert!(!is_past_the_end || done.is_ok(), "{context}: {done:?}");
            if done.is_ok() {
                assert_ne!(fake.values, before.values, "{context}");
            }
            undo_all(&mut fake, &mut journals, &context);
            assert_eq!(differences(&fake.values, &before.values), NONE, "{context}");
            if is_past_the_end {
                assert!(at > 200, "{at} operations");
                break;
            }
        }
    }
}

#[test]
fn a_fault_at_any_operation_of_undo_is_repaired_by_another_undo() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    for fault in FAULTS {
        for at in 0.. {
            let (mut fake, context) = (before.fresh(), format!("{fault:?} at {at}"));
            let mut journals = Journals::beside(&fake);
            let id = apply_and_confirm(&plan, &machine, &mut fake, &mut journals).unwrap();
            fake.operations.restart();
            fake.operations.set_fault(at, fault);
            let _ = undo(&id, &mut fake, &mut journals, Conflicts::Report);
            let is_past_the_end = fake.operations.count() <= at;
            undo_all(&mut fake, &mut journals, &context);
            assert_eq!(differences(&fake.values, &before.values), NONE, "{context}");
            if is_past_the_end {
                break;
            }
        }
    }
}

/// The process that applied is gone at any point; the one that watches the deadline undoes.
#[test]
fn a_plan_that_nobody_confirms_is_undone_after_a_kill_at_any_operation() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    for at in 0.. {
        let mut fake = before.fresh();
        let mut journals = Journals::beside(&fake);
        fake.operations.set_fault(at, Fault::LateKill);
        let _ = apply_plan(&plan, &machine, &mut fake, &mut journals);
        let is_past_the_end = fake.operations.count() <= at;
        fake.operations.restart();
        fake.uptime_s = 1060;
        for id in journals.ids().unwrap() {
            undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
        }
        assert_eq!(differences(&fake.values, &before.values), NONE, "{at}");
        if is_past_the_end {
            break;
        }
    }
}

/// What undo leaves after a restart: a fresh boot, and old values where `sysctl.d` had set ours.
fn expected_after(fresh: &Fake, before: &Fake, set_at_boot: &[String]) -> Values {
    let mut expected = fresh.values.clone();
    for path in set_at_boot {
        let coupled = [("_bytes", "_ratio"), ("_ratio", "_bytes")];
        let other = coupled.iter().find_map(|(one, other)| {
            let stem = path
                .strip_suffix(one)
                .filter(|_| path.contains("/dirty_"))?;
            Some(format!("{stem}{other}"))
        });
        for path in [Some(path.clone()), other].into_iter().flatten() {
            let old = before.raw(&path).to_owned();
            expected.insert(path, old);
        }
    }
    expected
}

/// The machine restarts where the process ended. Only files and starts at boot are left by then.
#[test]
fn after_a_restart_at_any_operation_of_apply_undo_leaves_a_fresh_boot() {
    let machine = machines::kunpeng(32);
    // Values of a fresh boot, which are not those before the plan.
    let (fresh, before) = (booted(&machine), host(&machine));
    let plan = before.plan(&machine, &goal());
    for at in 0.. {
        let mut fake = before.fresh();
        let mut journals = Journals::beside(&fake);
        fake.operations.set_fault(at, Fault::LateKill);
        let _ = apply_and_confirm(&plan, &machine, &mut fake, &mut journals);
        let is_past_the_end = fake.operations.count() <= at;
        let set_at_boot = fake.reboot(&fresh);
        undo_all(&mut fake, &mut journals, &at.to_string());
        let expected = expected_after(&fresh, &before, &set_at_boot);
        assert_eq!(differences(&fake.values, &expected), NONE, "{at}");
        if is_past_the_end {
            assert!(set_at_boot.len() > 3);
            break;
        }
    }
}

#[test]
fn after_a_restart_at_any_operation_of_undo_another_undo_finishes() {
    let machine = machines::kunpeng(32);
    let (fresh, before) = (booted(&machine), host(&machine));
    let plan = before.plan(&machine, &goal());
    for at in 0.. {
        let mut fake = before.fresh();
        let mut journals = Journals::beside(&fake);
        let id = apply_and_confirm(&plan, &machine, &mut fake, &mut journals).unwrap();
        fake.operations.restart();
        fake.operations.set_fault(at, Fault::LateKill);
        let _ = undo(&id, &mut fake, &mut journals, Conflicts::Report);
        let is_past_the_end = fake.operations.count() <= at;
        let set_at_boot = fake.reboot(&fresh);
        undo_all(&mut fake, &mut journals, &at.to_string());
        let expected = expected_after(&fresh, &before, &set_at_boot);
        assert_eq!(differences(&fake.values, &expected), NONE, "{at}");
        if is_past_the_end {
            break;
        }
    }
}
