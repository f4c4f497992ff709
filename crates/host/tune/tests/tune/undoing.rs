//! Other programs and operators between apply and undo, and refusals of the kernel.

use std::io;

use saiga_topology::machine::Machine;
use saiga_tune::apply::{ApplyError, OnFailure, Options, StepError, apply};
use saiga_tune::confirm::confirm;
use saiga_tune::goal::Goal;
use saiga_tune::history::{history, managed};
use saiga_tune::journal::{State, find};
use saiga_tune::undo::{Conflicts, Outcome, undo};
use saiga_tune::verify::{verify, verify_plan};

use crate::fake::{Fake, Journals, differences, identity};
use crate::faults::{BINDING, MARIADB, apply_plan, goal, host, options};
use crate::kernel::{NODE_PAGES, PAGES_IN_USE};
use crate::machines;

pub(crate) const NONE: [&str; 0] = [];
pub(crate) const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

pub(crate) fn named(texts: &[&str]) -> Goal {
    Goal {
        named: texts.iter().map(|text| text.parse().unwrap()).collect(),
        ..Goal::default()
    }
}

/// A machine, a host, and its journals.
pub(crate) fn start(machine: Machine) -> (Machine, Fake, Journals) {
    let fake = Fake::of(&machine);
    let journals = Journals::beside(&fake);
    (machine, fake, journals)
}

pub(crate) fn state(journals: &Journals) -> State {
    history(journals)
        .unwrap()
        .last()
        .unwrap()
        .state
        .clone()
        .unwrap()
}

#[test]
fn a_value_that_somebody_changed_is_left_until_the_user_decides() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1", "thp.enabled=never"]));
    assert_eq!(verify_plan(&plan, &fake).len(), 2);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    assert_eq!(state(&journals), State::Applied);
    fake.set(SWAPPINESS, "30\n");
    let found = verify(&id, &fake, &journals).unwrap();
    assert_eq!(
        found[0].to_string(),
        "vm.swappiness: /proc/sys/vm/swappiness is 30, not 1"
    );
    let report = undo(&plan.id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    let outcomes: Vec<_> = report
        .steps
        .iter()
        .map(|step| step.outcome.to_string())
        .collect();
    assert_eq!(outcomes, ["restored", "left: another program set it to 30"]);
    assert_eq!(
        (report.is_complete, state(&journals)),
        (false, State::Conflicts)
    );
    assert_eq!(fake.raw(SWAPPINESS), "30\n");
    // Once the conflict is gone, undo ends; or the user accepts the value.
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Accept).unwrap();
    assert!(report.is_complete);
    assert_eq!(
        report.steps[0].outcome,
        Outcome::Accepted {
            found: "30".to_owned()
        }
    );
    assert_eq!(state(&journals), State::Undone);
    fake.set(SWAPPINESS, "60\n");
    assert_eq!(differences(&fake.values, &old), NONE);
    // The beginning of either number is enough.
    for name in ["0001", &plan.id[..4], &id] {
        assert_eq!(find(&journals, name).unwrap(), id);
    }
    for name in ["none", "", "0002"] {
        assert!(find(&journals, name).is_err(), "{name}");
    }
}

/// An operator chose another number of requests after the scheduler was changed.
#[test]
fn a_side_that_somebody_changed_keeps_its_value() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let plan = fake.plan(&machine, &named(&["disk.scheduler@nvme0n1=none"]));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    let requests = "/sys/block/nvme0n1/queue/nr_requests";
    assert_eq!(fake.raw(requests), "1023\n");
    fake.set(requests, "512\n");
    assert!(
        undo(&id, &mut fake, &mut journals, Conflicts::Report)
            .unwrap()
            .is_complete
    );
    assert_eq!(fake.raw(requests), "512\n");
    assert_eq!(fake.raw("/sys/block/nvme0n1/queue/wbt_lat_usec"), "1900\n");
}

#[test]
fn an_undo_that_fails_again_and_again_does_not_fill_the_disk() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1"]));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.refusals.insert(SWAPPINESS.to_owned(), libc::EROFS);
    let mut failing = || {
        let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
        assert!(!report.is_complete);
        journals.texts.borrow()[&id].clone()
    };
    let first = failing();
    assert_eq!(failing(), first);
    fake.refusals.clear();
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete);
}

#[test]
fn a_file_that_differs_is_named_without_its_text() {
    const FILE: &str = "/etc/sysctl.d/99-zz-saiga.conf";
    let (machine, mut fake, _) = start(machines::kunpeng(32));
    let goal = Goal {
        is_persistent: true,
        ..named(&["vm.swappiness=1"])
    };
    let plan = fake.plan(&machine, &goal);
    let last = |fake: &Fake| verify_plan(&plan, fake).last().unwrap().to_string();
    assert_eq!(last(&fake), format!("persist: {FILE} is absent"));
    fake.set(FILE, "vm.swappiness = 2\n");
    assert_eq!(last(&fake), format!("persist: {FILE} has another text"));
}

#[test]
fn a_later_plan_for_the_same_value_is_undone_first() {
    let (machine, mut fake, mut journals) = start(machines::small_vm());
    let old = fake.values.clone();
    let mut ids = Vec::new();
    for value in ["vm.swappiness=1", "vm.swappiness=10"] {
        let mut goal = named(&[value]);
        goal.is_persistent = true;
        let plan = fake.plan(&machine, &goal);
        ids.push(apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap());
    }
    let report = undo(&ids[0], &mut fake, &mut journals, Conflicts::Report).unwrap();
    let hint = format!("plan {} changed it later: undo that plan first", ids[1]);
    assert_eq!(
        report.steps.len(),
        2,
        "the file for the next boot, and the value"
    );
    for step in report.steps {
        assert_eq!(step.notes, std::slice::from_ref(&hint), "{}", step.name);
    }
    for id in [&ids[1], &ids[0]] {
        assert!(
            undo(id, &mut fake, &mut journals, Conflicts::Report)
                .unwrap()
                .is_complete
        );
    }
    assert_eq!(differences(&fake.values, &old), NONE);
}

#[test]
fn a_plan_is_refused_if_anything_changed_since() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1"]));
    let mut other = machines::kunpeng(48);
    other.system.kernel = "5.10.0".to_owned();
    fake.set(SWAPPINESS, "40\n");
    let error = apply_plan(&plan, &other, &mut fake, &mut journals).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the host has changed since the plan was made; make a new plan:\n  \
         kernel: the plan was made for 4.19.90-2112.8.0.0131.oe1.aarch64, now 5.10.0\n  \
         online CPUs: the plan was made for 0-31, now 0-47\n  \
         /proc/sys/vm/swappiness: the plan was made for `60`, now `40`"
    );
    assert!(journals.texts.borrow().is_empty(), "nothing was begun");
}

#[test]
fn a_managed_interrupt_is_skipped_and_remembered_for_this_boot() {
    let machine = machines::kunpeng(32);
    let mut fake = host(&machine);
    let mut journals = Journals::beside(&fake);
    let plan = fake.plan(&machine, &goal());
    let found = identity(&machine);
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let applied = apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options(Some(60)),
        &mut started,
    );
    assert_eq!(applied.unwrap().managed, ["irq.affinity@103"]);
    assert_eq!(managed(&journals, "first").unwrap(), [103].into());
    assert!(managed(&journals, "second").unwrap().is_empty());
}

/// irqbalance moves interrupts every ten seconds until the plan stops it.
#[test]
fn an_interrupt_that_irqbalance_moved_since_does_not_stop_a_plan() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let mut goal = Goal::default();
    goal.placement.irqs = [(100, vec![28])].into();
    let plan = fake.plan(&machine, &goal);
    let affinity = "/proc/irq/100/smp_affinity_list";
    fake.set(affinity, "7\n");
    let moved = fake.values.clone();
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    assert_eq!(fake.raw(affinity), "28\n");
    assert!(
        undo(&id, &mut fake, &mut journals, Conflicts::Report)
            .unwrap()
            .is_complete
    );
    assert_eq!(differences(&fake.values, &moved), NONE);
    // Without irqbalance, somebody else moved it.
    fake.set("state of irqbalance.service", "inactive");
    let plan = fake.plan(&machine, &goal);
    fake.set(affinity, "9\n");
    let error = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap_err();
    assert!(matches!(error, ApplyError::Changed(changed) if changed.len() == 1));
}

#[test]
fn refusals_of_the_kernel_say_what_is_needed() {
    for (key, error, expected) in [
        (
            SWAPPINESS,
            libc::EACCES,
            "(root, or CAP_SYS_ADMIN and CAP_DAC_OVERRIDE, is needed)",
        ),
        (
            SWAPPINESS,
            libc::EROFS,
            "(/proc and /sys are read-only in most containers)",
        ),
        (
            SWAPPINESS,
            libc::EINVAL,
            "(the kernel does not take this value)",
        ),
    ] {
        let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
        let old = fake.values.clone();
        let plan = fake.plan(&machine, &named(&["vm.swappiness=1", "sched.steal=STEAL"]));
        fake.refusals.insert(key.to_owned(), error);
        let error = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with("; all steps were undone"), "{text}");
        assert_eq!(differences(&fake.values, &old), NONE);
        assert_eq!(state(&journals), State::Undone);
    }
}

#[test]
fn steps_before_a_failure_are_kept_if_the_user_says_so() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1", "sched.steal=STEAL"]));
    fake.refusals.insert(SWAPPINESS.to_owned(), libc::EPERM);
    let options = Options {
        on_failure: OnFailure::Keep,
        ..options(None)
    };
    let found = identity(&machine);
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let error = apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options,
        &mut started,
    );
    let text = error.unwrap_err().to_string();
    assert!(text.ends_with("; the steps before it were kept"), "{text}");
    assert_eq!(state(&journals), State::Applied);
    // Another plan may follow.
    let plan = fake.plan(&machine, &named(&["thp.enabled=never"]));
    apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    let ids: Vec<String> = journals.texts.borrow().keys().cloned().collect();
    for id in ids.iter().rev() {
        let report = undo(id, &mut fake, &mut journals, Conflicts::Report).unwrap();
        assert!(report.is_complete, "{report:?}");
    }
    assert_eq!(differences(&fake.values, &old), NONE);
}

#[test]
fn fewer_huge_pages_than_asked_are_a_failure() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["hugepages.node@node0-2048kB=8192"]));
    let error = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap_err();
    let ApplyError::Failed(failure) = error else {
        panic!("{error}");
    };
    let StepError::NotTaken { got, .. } = &failure.error else {
        panic!("{failure}");
    };
    assert_eq!(*got, format!("`{NODE_PAGES}`"));
    assert_eq!(differences(&fake.values, &old), NONE);
}

#[test]
fn huge_pages_that_are_in_use_are_given_back_by_another_undo() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["hugepages.node@node0-2048kB=100"]));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.set(PAGES_IN_USE, "40");
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert_eq!(
        report.steps[0].outcome.to_string(),
        "shows 40 instead of 0 (pages in use stay until their process ends)"
    );
    assert_eq!(state(&journals), State::PartlyUndone);
    fake.values.remove(PAGES_IN_USE);
    assert!(
        undo(&id, &mut fake, &mut journals, Conflicts::Report)
            .unwrap()
            .is_complete
    );
    assert_eq!(differences(&fake.values, &old), NONE);
}

#[test]
fn a_value_that_does_not_stay_is_a_failure_and_not_overwritten() {
    let (machine, mut fake, mut journals) = start(machines::small_vm());
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1"]));
    fake.restless.insert(SWAPPINESS.to_owned());
    let text = apply_plan(&plan, &machine, &mut fake, &mut journals)
        .unwrap_err()
        .to_string();
    assert!(text.contains("shows `77` after `1` was written"), "{text}");
}

#[test]
fn a_device_that_is_gone_does_not_stop_undo() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let plan = fake.plan(
        &machine,
        &named(&["vm.swappiness=1", "disk.scheduler@nvme1n1=none"]),
    );
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.values.retain(|key, _| !key.contains("nvme1n1"));
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete);
    assert_eq!(report.steps[0].outcome, Outcome::Gone);
    assert_eq!(fake.raw(SWAPPINESS), "60\n");
}

/// The unit finds interrupts among those of the device, and so does undo: the same number may be an
/// interrupt of another device after a boot.
#[test]
fn an_interrupt_that_the_unit_set_at_boot_is_put_back() {
    let machine = machines::kunpeng(32);
    let mut before = host(&machine);
    let nic = &machine.nics[0];
    let listed = |irq: u32| format!("/sys/class/net/{}/device/msi_irqs/{irq}", nic.name);
    for irq in &nic.irqs {
        before.set(&listed(*irq), "msix\n");
        before.set(&format!("/proc/irq/{irq}/smp_affinity_list"), "0-31\n");
    }
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    let mut journals = Journals::beside(&fake);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    confirm(&id, &mut fake, &mut journals, 1010).unwrap();
    fake.reboot(&before);
    let is_placed = |irq: u32| nic.irqs.contains(&irq) && !before.managed.contains(&irq);
    let placed = plan
        .steps
        .iter()
        .filter(|step| step.target.irq().is_some_and(is_placed));
    assert!(placed.clone().count() > 1);
    for step in placed {
        fake.set(&step.target.to_string(), &format!("{}\n", step.now));
    }
    let (mut other, mut same) = (fake.fresh(), journals.texts.clone());
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete);
    assert_eq!(differences(&fake.values, &before.values), NONE);

    other.values.retain(|key, _| !key.contains("/msi_irqs/"));
    std::mem::swap(&mut journals.texts, &mut same);
    let report = undo(&id, &mut other, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete);
    let irqs = report
        .steps
        .iter()
        .filter(|step| step.target.irq().is_some());
    for step in irqs {
        assert_eq!(step.outcome, Outcome::Renumbered, "{}", step.name);
    }
}

/// Space for undo is reserved, but the file system may refuse all the same.
#[test]
fn undo_restores_values_without_a_journal() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    let mut journals = Journals::beside(&fake);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    journals.is_full = true;
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete && report.journal_error.is_some());
    assert_eq!(differences(&fake.values, &before.values), NONE);
    journals.is_full = false;
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete, "{report:#?}");
    assert_eq!(differences(&fake.values, &before.values), NONE);
}

#[test]
fn a_service_is_bound_by_a_drop_in_that_undo_removes() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let drop_in = "/etc/systemd/system/mariadb.service.d/99-zz-saiga-cores.conf";
    let mut goal = named(&[]);
    goal.bindings = [(MARIADB.to_owned(), BINDING.to_owned())].into();
    let planned = |fake: &Fake| fake.plan(&machine, &goal);
    let absent = planned(&fake);
    assert!(absent.steps.is_empty());
    assert_eq!(
        absent.not_applicable[0].reason,
        "systemd has no unit mariadb.service"
    );

    fake.set(&format!("start of {MARIADB} at boot"), "enabled\n");
    let old = fake.values.clone();
    let plan = planned(&fake);
    assert_eq!(plan.steps[0].name(), "binding@mariadb.service");
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    assert!(fake.raw(drop_in).ends_with(BINDING));
    assert!(planned(&fake).steps.is_empty());
    undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert_eq!(differences(&fake.values, &old), NONE);

    fake.set(drop_in, "[Service]\nCPUAffinity=1\n");
    let reason = planned(&fake).not_applicable[0].reason.clone();
    assert_eq!(reason, "a file of this name was not made by Saiga");
}
