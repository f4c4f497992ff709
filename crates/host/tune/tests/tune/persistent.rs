//! Files for the next boot after the values were set without them.

use saiga_topology::machine::Machine;
use saiga_tune::about::Risk;
use saiga_tune::goal::{Engine, Goal, Role};
use saiga_tune::history::{before, managed};
use saiga_tune::plan::{Plan, plan};
use saiga_tune::readings::Readings;
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::{Fake, Journals, differences};
use crate::faults::{apply_plan, host};
use crate::machines;
use crate::undoing::{NONE, named, start};

const SYSCTL: &str = "/etc/sysctl.d/99-zz-saiga.conf";
const UNIT: &str = "/etc/systemd/system/saiga-tune.service";

/// As the CLI plans: with the values before the plans that are applied.
fn planned(fake: &Fake, machine: &Machine, journals: &Journals, goal: &Goal) -> Plan {
    let managed = managed(journals, &fake.boot).unwrap();
    let mut readings = Readings::read(fake, machine, managed).unwrap();
    readings.before = before(journals, &fake.boot).unwrap();
    plan(machine, &readings, goal).unwrap()
}

/// The lines of a file that set a value.
fn settings<'a>(plan: &'a Plan, path: &str) -> Vec<&'a str> {
    let mut steps = plan.steps.iter();
    let step = steps.find(|step| step.target.to_string() == path);
    let lines = step.unwrap().now.lines();
    lines
        .filter(|line| line.contains(" = ") || line.starts_with("ExecStart="))
        .collect()
}

#[test]
fn the_files_have_the_values_that_an_earlier_plan_set() {
    let machine = machines::kunpeng(32);
    let fake = host(&machine);
    let mut goal = Goal {
        engine: Engine::Postgres,
        role: Role::Server,
        ..crate::faults::goal()
    };
    goal.bindings.clear();
    let at_once = planned(&fake, &machine, &Journals::beside(&fake), &goal);

    let mut later = fake.fresh();
    let mut journals = Journals::beside(&later);
    goal.is_persistent = false;
    let plain = planned(&later, &machine, &journals, &goal);
    let id = apply_plan(&plain, &machine, &mut later, &mut journals).unwrap();
    saiga_tune::confirm::confirm(&id, &mut later, &mut journals, 1001).unwrap();
    goal.is_persistent = true;
    let again = planned(&later, &machine, &journals, &goal);
    for path in [SYSCTL, UNIT] {
        let (first, second) = (settings(&at_once, path), settings(&again, path));
        assert!(first.len() > 5, "{first:?}");
        // The interrupt that refused its affinity is left. The number of queues changes no more, so
        // only the second plan steers the transmit queues.
        let expected: Vec<&str> = first
            .iter()
            .filter(|line| !line.contains("4p)"))
            .copied()
            .collect();
        let second: Vec<&str> = second
            .iter()
            .filter(|line| !line.contains("xps_cpus"))
            .copied()
            .collect();
        assert_eq!(second, expected, "{path}");
    }
    let is_file = |text: &str| text.starts_with("/etc/") || text.contains(" at boot");
    for step in &again.steps {
        let is_steering = step.name().starts_with("nic.xps_cpus");
        let is_file = is_file(&step.target.to_string());
        assert!(is_steering || is_file, "{}", step.name());
    }
    let id = apply_plan(&again, &machine, &mut later, &mut journals).unwrap();
    saiga_tune::confirm::confirm(&id, &mut later, &mut journals, 1002).unwrap();
    let third = planned(&later, &machine, &journals, &goal);
    assert_eq!(third.steps, vec![]);
}

#[test]
fn a_value_that_another_program_set_right_is_in_the_file() {
    let (machine, mut fake, journals) = start(machines::small_vm());
    fake.set("/proc/sys/vm/swappiness", "1\n");
    let goal = Goal {
        is_persistent: true,
        ..named(&["vm.swappiness=1"])
    };
    let plan = planned(&fake, &machine, &journals, &goal);
    assert_eq!(settings(&plan, SYSCTL), ["vm.swappiness = 1"]);
    assert_eq!(plan.steps.len(), 1);
    assert!(!plan.needs_confirmation());
}

/// With pages of 64 KiB, a huge page of the default size has 512 MiB.
#[test]
fn more_huge_pages_than_memory_are_not_set_at_boot() {
    let goal = named(&["boot.hugepages=8192"]);
    for (cpus, is_refused) in [(96, true), (128, false)] {
        let (machine, fake, journals) = start(machines::kunpeng_with(cpus, 16));
        let plan = planned(&fake, &machine, &journals, &goal);
        let reason = &plan.not_applicable.last().unwrap().reason;
        let refused = reason.starts_with("a huge page has 512 MiB here: hugepages=8192 would take");
        assert_eq!(refused, is_refused, "{reason}");
    }
}

/// Parameters of the kernel are set by name, where GRUB reads a file for them.
#[test]
fn parameters_of_the_kernel_are_in_a_drop_in_that_undo_removes() {
    const FILE: &str = "/etc/default/grub.d/90-saiga.cfg";
    let (machine, mut fake, mut journals) = start(machines::small_vm());
    let goal = named(&["boot.transparent_hugepage=never", "boot.hugepages=64"]);
    let without = planned(&fake, &machine, &journals, &goal);
    assert_eq!(without.steps, vec![]);
    let reason = &without.not_applicable[0].reason;
    let command = "grubby --update-kernel=ALL --args=\"hugepages=64 transparent_hugepage=never\"";
    assert!(reason.contains(command), "{reason}");

    fake.set(
        "/usr/sbin/grub-mkconfig",
        "for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n",
    );
    let old = fake.values.clone();
    let plan = planned(&fake, &machine, &journals, &goal);
    assert_eq!(plan.steps[0].risk, Risk::Reboot);
    assert_eq!(Plan::from_toml(&plan.to_toml().unwrap()).unwrap(), plan);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    let line = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=64 transparent_hugepage=never\"";
    assert_eq!(fake.raw(FILE).lines().last(), Some(line));
    assert_eq!(planned(&fake, &machine, &journals, &goal).steps, vec![]);
    // A parameter of an earlier plan stays.
    let more = planned(&fake, &machine, &journals, &named(&["boot.hugepages=8"]));
    let line = line.replace("64", "8");
    assert_eq!(more.steps[0].now.lines().last(), Some(line.as_str()));
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(
        report.steps[0].notes[0].starts_with("run update-grub"),
        "{report:?}"
    );
    assert_eq!(differences(&fake.values, &old), NONE);

    fake.set(FILE, "GRUB_TIMEOUT=0\n");
    let foreign = planned(&fake, &machine, &journals, &goal);
    assert!(
        foreign.not_applicable[0]
            .reason
            .ends_with("was not made by Saiga")
    );
    let bad = plan_error(&fake, &machine, "boot.transparent_hugepage=sometimes");
    assert!(
        bad.ends_with("`sometimes` is not always or madvise or never"),
        "{bad}"
    );
    let unknown = plan_error(&fake, &machine, "boot.init=/bin/sh");
    assert!(unknown.starts_with("unknown knob `boot.init`"), "{unknown}");
}

fn plan_error(fake: &Fake, machine: &Machine, text: &str) -> String {
    let error = plan(machine, &fake.readings(machine), &named(&[text]));
    error.unwrap_err().to_string()
}

/// The values came from the file of the second plan, the old ones are in the journal of the first.
#[test]
fn after_a_restart_both_plans_are_undone() {
    let (machine, mut fake, mut journals) = start(machines::small_vm());
    let old = fake.fresh();
    let mut goal = named(&["vm.swappiness=1"]);
    let mut ids = Vec::new();
    for is_persistent in [false, true] {
        goal.is_persistent = is_persistent;
        let plan = planned(&fake, &machine, &journals, &goal);
        ids.push(apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap());
    }
    fake.reboot(&old);
    assert_eq!(fake.raw("/proc/sys/vm/swappiness"), "1\n");
    for id in ids.iter().rev() {
        let report = undo(id, &mut fake, &mut journals, Conflicts::Report).unwrap();
        assert!(report.is_complete, "{report:#?}");
    }
    assert_eq!(differences(&fake.values, &old.values), NONE);
}
