//! Fewer queues, on drivers that free the interrupts of those that go.

use std::io;

use saiga_topology::machine::Machine;
use saiga_tune::apply::apply;
use saiga_tune::cores::interrupts::placement;
use saiga_tune::cores::partition::{Goal as Division, divide};
use saiga_tune::goal::{Goal, Role};
use saiga_tune::undo::{Conflicts, undo};
use saiga_tune::verify::verify;

use crate::fake::{Journals, differences, identity};
use crate::faults::{freeing, goal, options};
use crate::machines;
use crate::undoing::NONE;

#[test]
fn only_interrupts_of_the_queues_that_stay_are_placed() {
    let mut machine = machines::kunpeng(32);
    let placed = |machine: &Machine| {
        let division = Division {
            queues: Some(2),
            ..Division::of(Role::Server)
        };
        let partition = divide(machine, &division).unwrap();
        let placement = placement(machine, &division, &partition).unwrap();
        placement.irqs.into_keys().collect::<Vec<u32>>()
    };
    assert_eq!(placed(&machine), [100, 101]);
    // With an interrupt for other purposes, names tell the queues.
    let mut other = machine.irqs[0].clone();
    other.number = 99;
    other.actions = vec!["hinic_mgmt".to_owned()];
    machine.irqs.insert(0, other);
    machine.nics[0].irqs.insert(0, 99);
    for (irq, queue) in (100..104).zip(0..) {
        let irq = machine.irqs.iter_mut().find(|other| other.number == irq);
        irq.unwrap().actions = vec![format!("enp3s0-TxRx-{queue}")];
    }
    assert_eq!(placed(&machine), [99, 100, 101]);
}

/// The driver gives the interrupts of other queues away than the plan expects.
#[test]
fn an_interrupt_that_went_with_its_queue_is_skipped() {
    let machine = machines::kunpeng(32);
    let before = freeing(&machine);
    let goal = Goal {
        placement: saiga_tune::goal::Placement {
            irqs: [(100, vec![28]), (102, vec![30])].into(),
            ..goal().placement
        },
        ..goal()
    };
    let plan = before.plan(&machine, &goal);
    let mut fake = before.fresh();
    let mut journals = Journals::beside(&fake);
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let found = identity(&machine);
    let applied = apply(
        &plan,
        &found,
        &mut fake,
        &mut journals,
        options(Some(60)),
        &mut started,
    )
    .unwrap();
    assert_eq!(applied.absent, ["irq.affinity@102"]);
    assert_eq!(fake.raw("/proc/irq/100/smp_affinity_list"), "28\n");
    assert_eq!(verify(&applied.id, &fake, &journals).unwrap(), vec![]);
    let report = undo(&applied.id, &mut fake, &mut journals, Conflicts::Report).unwrap();
    assert!(report.is_complete, "{report:#?}");
    assert_eq!(differences(&fake.values, &before.values), NONE);
}
