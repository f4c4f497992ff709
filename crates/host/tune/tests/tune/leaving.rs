//! Values that undo leaves: those of other programs after a restart, and those that the user gives
//! up.

use saiga_tune::goal::Goal;
use saiga_tune::undo::{Conflicts, Outcome, undo};

use crate::fake::{Fake, Journals};
use crate::faults::apply_plan;
use crate::machines;

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

fn named(text: &str) -> Goal {
    Goal {
        named: vec![text.parse().unwrap()],
        ..Goal::default()
    }
}

/// An administrator has put the value of the plan into a file of their own.
#[test]
fn a_value_that_a_file_of_another_program_sets_at_boot_is_left() {
    let machine = machines::small_vm();
    let mut fake = Fake::of(&machine);
    let mut journals = Journals::beside(&fake);
    let plan = fake.plan(&machine, &named("vm.swappiness=1"));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    let fresh = fake.fresh();
    fake.reboot(&fresh);
    fake.set(SWAPPINESS, "1\n");
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert_eq!(report.steps[0].outcome, Outcome::EndedWithBoot);
    assert_eq!(fake.raw(SWAPPINESS), "1\n");
}

#[test]
fn a_value_that_cannot_be_restored_can_be_given_up() {
    let machine = machines::small_vm();
    let mut fake = Fake::of(&machine);
    let mut journals = Journals::beside(&fake);
    let plan = fake.plan(&machine, &named("vm.swappiness=1"));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.refusals.insert(SWAPPINESS.to_owned(), libc::EINVAL);
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(!report.is_complete);
    let report = undo(&id, &mut fake, &mut journals, Conflicts::Accept).unwrap();
    assert!(report.is_complete, "{report:?}");
    // Another plan can be applied now.
    let next = fake.plan(&machine, &named("thp.enabled=never"));
    apply_plan(&next, &machine, &mut fake, &mut journals).unwrap();
}
