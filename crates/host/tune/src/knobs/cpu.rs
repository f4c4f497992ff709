//! Frequency and idle states of CPUs.

use saiga_topology::machine::Machine;

use crate::about::Stage;
use crate::form::Form;
use crate::knob::{Domain, Knob, Place};
use crate::target::Target;

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "cpu.governor",
        purpose: "how the kernel chooses the frequency of a CPU",
        reason: "A governor that saves power lowers the frequency between short requests.",
        source: "A-Tune profiles; Linux admin-guide/pm/cpufreq.rst; gs_perfconfig (BIOS policy)",
        effect: "lower latency at partial load; none at full load; more power",
        default: "performance for a server whose CPUs have a governor",
        domain: Domain::Listed,
        propose: |context, place| {
            context.readings.raw(&place.target)?;
            context.serves().then(|| "performance".to_owned())
        },
        ..Knob::by(governors, Stage::Kernel)
    },
    Knob {
        id: "cpu.idle_governor",
        purpose: "how the kernel chooses the idle state of a CPU",
        reason: "In a virtual machine, polling before halting saves wake-up latency.",
        source: "Linux admin-guide/pm/cpuidle.rst; virt/guest-halt-polling.rst",
        effect: "lower latency at low load; more power",
        domain: Domain::Listed,
        ..Knob::kernel("/sys/devices/system/cpu/cpuidle/current_governor")
    },
];

/// CPUs that can only have one frequency share a policy, which has the number of its first CPU.
fn governors(machine: &Machine) -> Vec<Place> {
    let online = machine.cpus.iter().filter(|cpu| cpu.is_online);
    let place = |id: u32| {
        let path = format!("/sys/devices/system/cpu/cpufreq/policy{id}/scaling_governor");
        Place::new(format!("policy{id}"), Target::file(path, Form::Words))
    };
    online.map(|cpu| place(cpu.id)).collect()
}
