//! The time to confirm a plan: when it begins, what it is measured by, and what ends it.

use std::io;
use std::time::Duration;

use saiga_tune::apply::{ApplyError, OnFailure, Options, apply};
use saiga_tune::confirm::{ConfirmError, Deadline, confirm, undo_if_unconfirmed};
use saiga_tune::journal::State;
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::{Fake, Fault, Journals, differences, identity};
use crate::faults::{apply_plan, goal, host, options};
use crate::machines;
use crate::undoing::{NONE, SWAPPINESS, named, start, state};

#[test]
fn a_plan_that_may_cut_the_connection_waits_for_its_confirmation() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let (found, mut fake) = (identity(&machine), before.fresh());
    let mut journals = Journals::beside(&fake);
    let error = apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options(None),
        &mut started,
    );
    assert!(matches!(error, Err(ApplyError::NeedsConfirmation)));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    assert_eq!(state(&journals), State::Unconfirmed);
    assert!(
        !fake
            .values
            .contains_key("/etc/systemd/system/saiga-tune.service")
    );
    fake.uptime_s = 1050;
    let early = undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
    assert_eq!(early, Deadline::Waiting(Duration::from_secs(10)));
    fake.uptime_s = 1059;
    confirm(&id, &mut fake, &mut journals, 9).unwrap();
    assert_eq!(fake.raw("start of saiga-tune.service at boot"), "enabled");
    fake.uptime_s = 1060;
    let late = undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
    assert_eq!(
        (late, state(&journals)),
        (Deadline::Settled, State::Applied)
    );
    let again = confirm(&id, &mut fake, &mut journals, 1060);
    assert!(matches!(again, Err(ConfirmError::NotWaiting(_))));
}

#[test]
fn half_a_plan_that_the_user_keeps_can_be_confirmed() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let (found, mut fake) = (identity(&machine), before.fresh());
    let mut journals = Journals::beside(&fake);
    fake.refusals.insert(SWAPPINESS.to_owned(), libc::EPERM);
    let options = Options {
        on_failure: OnFailure::Keep,
        ..options(Some(60))
    };
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options,
        &mut started,
    )
    .unwrap_err();
    confirm(&plan.id, &mut fake, &mut journals, 1010).unwrap();
    fake.uptime_s = 1060;
    let late = undo_if_unconfirmed(&plan.id, &mut fake, &mut journals).unwrap();
    assert_eq!(
        (late, state(&journals)),
        (Deadline::Settled, State::Applied)
    );
    assert!(!fake.values.contains_key("/etc/sysctl.d/99-zz-saiga.conf"));
    assert!(
        undo(&plan.id, &mut fake, &mut journals, Conflicts::Report)
            .unwrap()
            .is_complete
    );
    assert_eq!(differences(&fake.values, &before.values), NONE);
}

#[test]
fn a_late_confirmation_or_one_after_a_restart_is_refused() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    let mut journals = Journals::beside(&fake);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.uptime_s = 1060;
    let late = confirm(&id, &mut fake, &mut journals, 1010);
    assert!(matches!(late, Err(ConfirmError::TooLate(_))));
    // The time since the boot begins again: an old deadline says nothing.
    fake.reboot(&before);
    let restarted = confirm(&id, &mut fake, &mut journals, 1010);
    assert!(matches!(restarted, Err(ConfirmError::Restarted(_))));
    let undone = undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
    assert!(matches!(undone, Deadline::Undone(report) if report.is_complete));
}

/// The process that watches the deadline cannot be started: nothing was changed yet.
#[test]
fn without_a_watching_process_nothing_is_changed() {
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["nic.gro=on"]));
    let found = identity(&machine);
    let mut started = |_: &str| -> io::Result<()> { Err(io::ErrorKind::OutOfMemory.into()) };
    let error = apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options(Some(5)),
        &mut started,
    );
    assert!(matches!(error, Err(ApplyError::Watch(_))));
    assert_eq!(differences(&fake.values, &old), NONE);
    assert_eq!(state(&journals), State::Nothing);
}

/// Neither the changes nor a clock that is set take time from the operator.
#[test]
fn the_time_to_confirm_begins_after_the_last_change_and_not_by_the_clock() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    fake.seconds_per_write = 100;
    let mut journals = Journals::beside(&fake);
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    assert!(fake.uptime_s > 2000, "{}", fake.uptime_s);
    let waiting = undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
    assert_eq!(waiting, Deadline::Waiting(Duration::from_secs(60)));
    // A host without a battery gets its clock from another host, years ahead.
    fake.seconds_per_write = 0;
    confirm(&id, &mut fake, &mut journals, 4_000_000_000).unwrap();
}

/// The process that applied is gone, and no user has seen an ID to confirm.
#[test]
fn an_application_that_was_killed_is_undone_at_once() {
    let machine = machines::kunpeng(32);
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    let mut journals = Journals::beside(&fake);
    fake.operations.set_fault(150, Fault::LateKill);
    apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap_err();
    fake.operations.restart();
    assert_eq!(state(&journals), State::Interrupted);
    assert_ne!(fake.values, before.values);
    let refused = confirm(&plan.id, &mut fake, &mut journals, 1000);
    assert!(matches!(refused, Err(ConfirmError::NotWaiting(_))));
    let undone = undo_if_unconfirmed(&plan.id, &mut fake, &mut journals).unwrap();
    assert!(matches!(undone, Deadline::Undone(report) if report.is_complete));
    assert_eq!(differences(&fake.values, &before.values), NONE);
}

/// A value of another program does not end the attempts to restore the others.
#[test]
fn values_that_failed_are_undone_later_although_others_are_in_conflict() {
    const GRO: &str = "rx-gro of enp3s0";
    let (machine, mut fake, mut journals) = start(machines::kunpeng(32));
    let old = fake.values.clone();
    let plan = fake.plan(&machine, &named(&["nic.gro=on", "vm.swappiness=1"]));
    let id = apply_plan(&plan, &machine, &mut fake, &mut journals).unwrap();
    fake.set(SWAPPINESS, "30\n");
    fake.refusals.insert(GRO.to_owned(), libc::EBUSY);
    fake.uptime_s = 1060;
    let mut again = |fake: &mut Fake| {
        undo_if_unconfirmed(&id, fake, &mut journals).unwrap();
        journals.texts.borrow()[&id].clone()
    };
    let first = again(&mut fake);
    assert_eq!(again(&mut fake), first, "the journal does not grow");
    fake.refusals.clear();
    again(&mut fake);
    assert_eq!(fake.raw(GRO), "off");
    let settled = undo_if_unconfirmed(&id, &mut fake, &mut journals).unwrap();
    assert_eq!((settled, fake.raw(SWAPPINESS)), (Deadline::Settled, "30\n"));
    fake.set(SWAPPINESS, "60\n");
    assert_eq!(differences(&fake.values, &old), NONE);
}
