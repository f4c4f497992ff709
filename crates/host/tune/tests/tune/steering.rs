//! Packet steering in a plan: after the queues and their interrupts, and only where no other
//! program has chosen the CPUs.

use saiga_tune::cores::interrupts::placement;
use saiga_tune::cores::partition::{self, divide};
use saiga_tune::goal::{Goal, Role};
use saiga_tune::step::Step;

use crate::fake::Fake;
use crate::machines;

/// The steps of a plan for a Kunpeng whose transmit queues have these CPUs.
fn steps(senders: &str, interrupt_cores: Option<usize>) -> Vec<Step> {
    let machine = machines::kunpeng(128);
    let division = partition::Goal {
        interrupt_cores,
        ..partition::Goal::of(Role::Server)
    };
    let partition = divide(&machine, &division).unwrap();
    let goal = Goal {
        placement: placement(&machine, &division, &partition).unwrap(),
        ..Goal::default()
    };
    let mut fake = Fake::of(&machine);
    fake.set_senders("enp3s0", senders);
    fake.plan(&machine, &goal).steps
}

fn names(steps: &[Step]) -> Vec<String> {
    steps.iter().map(Step::name).collect()
}

#[test]
fn senders_follow_the_interrupts() {
    let steps = steps("0\n", Some(8));
    let names = names(&steps);
    let first = |knob: &str| names.iter().position(|name| name.starts_with(knob));
    let last = |knob: &str| names.iter().rposition(|name| name.starts_with(knob));
    assert!(last("irq.affinity") < first("nic.xps_cpus"), "{names:?}");
    assert!(last("irq.affinity") < first("nic.rps_cpus"), "{names:?}");
    let now = |name: &str| {
        let step = steps.iter().find(|step| step.name() == name);
        step.unwrap().now.as_str()
    };
    // CPUs 0-31 and 64-95; the cores of interrupts without a queue are 30, 62, 94 and 126.
    assert_eq!(now("nic.xps_cpus@enp3s0-0"), "ffffffff");
    assert_eq!(now("nic.xps_cpus@enp3s0-2"), "ffffffff,00000000,00000000");
    assert_eq!(now("nic.rps_cpus@enp3s0-1"), "40000000,00000000");
}

#[test]
fn cpus_that_the_driver_chose_stay() {
    let has_xps = |senders| {
        names(&steps(senders, None))
            .iter()
            .any(|name| name.contains("xps"))
    };
    assert!(has_xps("0\n"));
    assert!(!has_xps("3\n"));
}
