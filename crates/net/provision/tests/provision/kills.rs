//! The kernel refuses, or the process is killed, at each step.

use crate::fake::{Fake, everything};

/// The number of changes of a `prepare` of everything.
fn steps() -> usize {
    let mut fake = Fake::new();
    fake.prepare(&everything(&fake)).unwrap();
    fake.done
}

/// A machine whose `prepare` was killed after so many changes.
fn killed(after: usize) -> Fake {
    let mut fake = Fake::new();
    let wanted = everything(&fake);
    fake.kill(after, |fake| fake.prepare(&wanted).map(drop));
    fake
}

#[test]
fn a_kill_at_each_step_is_undone() {
    let before = Fake::new().tree();
    let steps = steps();
    // Pages, the module, and three steps for each card.
    assert_eq!(steps, 1 + 1 + 3 * 3);
    for step in 0..=steps {
        let mut fake = killed(step);
        assert_eq!(fake.tree() == before, step == 0);
        fake.undo().unwrap();
        assert_eq!(fake.tree(), before, "down after step {step}");

        let mut fake = killed(step);
        drop(fake.prepare(&everything(&fake)).unwrap());
        fake.undo().unwrap();
        assert_eq!(fake.tree(), before, "up and down after step {step}");
    }
    // The way back is interrupted as well.
    for step in 0..steps {
        let mut fake = killed(steps);
        fake.kill(step, Fake::undo);
        fake.undo().unwrap();
        assert_eq!(fake.tree(), before, "down after step {step} of down");
    }
}

/// A failure that is not a kill is undone at once.
#[test]
fn a_refusal_at_each_step_is_undone_at_once() {
    for step in 0..steps() {
        let mut fake = Fake::new();
        let before = fake.tree();
        fake.refused = Some(step);
        fake.prepare(&everything(&fake)).unwrap_err();
        assert_eq!(fake.tree(), before, "step {step}");
        assert!(!fake.record().exists(), "step {step}");
    }
}

/// The kernel has given a part of the pages when the process is killed.
#[test]
fn pages_that_came_in_part_are_given_back() {
    let mut fake = killed(0);
    let before = fake.tree();
    let pages = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB";
    fake.put(&format!("{pages}/nr_hugepages"), "11\n");
    fake.put(&format!("{pages}/free_hugepages"), "8\n");
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
}
