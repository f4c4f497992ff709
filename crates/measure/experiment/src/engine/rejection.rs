//! Accepts or rejects a run that ended: by the CPU time that other processes and the hypervisor
//! took, by invalid numbers and by units of figures.

use std::collections::BTreeMap;

use crate::result::Detail;
use crate::workload::Measured;
use saiga_process::cpu::Stolen;

/// Prefix of the reason for rejecting a run because of other processes.
pub const OTHERS: &str = "other processes";
/// Prefix of the reason for rejecting a run because of the hypervisor.
pub const STOLEN: &str = "the hypervisor took";

/// Error of the CPU time of other processes, in seconds: a tick and a half per core.
const RESOLUTION_S: f64 = 0.03;

/// The reason for rejecting a run; `None` for an accepted run. `max_cores` is the limit on the CPU
/// time that other processes or the hypervisor took, in cores.
///
/// The CPU time of other processes includes the time stolen in the measured part of the run;
/// `stolen` covers the whole run, including its warm-up.
pub(super) fn rejection(measured: &Measured, stolen: Stolen, max_cores: f64) -> Option<String> {
    if measured.invalid.is_some() {
        return measured.invalid.clone();
    }
    let above = |cpu_s: f64, window_s: f64| cpu_s > max_cores * window_s + RESOLUTION_S;
    let reason = |what: &str, cpu_s: f64, window_s: f64| {
        format!("{what} {cpu_s:.2} s of CPU in {window_s:.2} s, more than {max_cores:.2} of a core")
    };
    if above(stolen.cpu_s, stolen.window_s) {
        return Some(reason(STOLEN, stolen.cpu_s, stolen.window_s));
    }
    let (foreign_s, window_s) = (measured.foreign_cpu_s, measured.window_s);
    above(foreign_s, window_s).then(|| reason(&format!("{OTHERS} used"), foreign_s, window_s))
}

/// Rejects a run with values that are infinite or not a number, and removes these values. JSON
/// cannot represent them, so a single one would prevent writing all other runs.
pub(super) fn reject_non_finite(measured: &mut Measured) {
    let mut wrong: Vec<String> = Vec::new();
    measured.metrics.retain(|name, value| {
        if !value.is_finite() {
            wrong.push(name.clone());
        }
        value.is_finite()
    });
    let times = [
        ("the length of the run", &mut measured.seconds),
        (
            "the CPU time of other processes",
            &mut measured.foreign_cpu_s,
        ),
    ];
    for (name, value) in times {
        if !value.is_finite() {
            wrong.push(name.to_owned());
            *value = 0.0;
        }
    }
    let is_invalid = |detail: &Detail| detail.numbers().any(|number| !number.is_finite());
    if measured.detail.as_deref().is_some_and(is_invalid) {
        wrong.push("a value in the details".to_owned());
        measured.detail = None;
    }
    if let Some(first) = wrong.first() {
        let reason = format!("{first} is not a number");
        measured.invalid.get_or_insert(reason);
    }
}

/// Rejects a run in which a figure has another unit than in an earlier run; `known` are the units
/// of earlier runs.
pub(super) fn reject_changed_units(measured: &mut Measured, known: &BTreeMap<String, String>) {
    let Some(detail) = &measured.detail else {
        return;
    };
    let other = detail.units.iter().find_map(|(name, unit)| {
        let before = known.get(name).filter(|before| *before != unit)?;
        Some(format!(
            "a hook printed {name} in {unit}; an earlier run printed it in {before}"
        ))
    });
    if let Some(reason) = other {
        measured.invalid.get_or_insert(reason);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn other_processes_and_the_hypervisor_have_one_limit_and_distinct_reasons() {
        for (foreign_cpu_s, stolen_s, wanted) in [
            (0.1, 0.0, None),
            (0.1, 0.1, None),
            (
                0.2,
                0.0,
                Some("other processes used 0.20 s of CPU in 1.00 s, more than 0.10 of a core"),
            ),
            (
                0.2,
                0.3,
                Some("the hypervisor took 0.30 s of CPU in 2.00 s, more than 0.10 of a core"),
            ),
            (
                0.0,
                0.3,
                Some("the hypervisor took 0.30 s of CPU in 2.00 s, more than 0.10 of a core"),
            ),
        ] {
            let measured = Measured {
                seconds: 1.0,
                metrics: BTreeMap::new(),
                foreign_cpu_s,
                window_s: 1.0,
                invalid: None,
                detail: None,
            };
            let stolen = Stolen {
                cpu_s: stolen_s,
                window_s: 2.0,
            };
            let reason = rejection(&measured, stolen, 0.1);
            assert_eq!(reason.as_deref(), wanted, "{foreign_cpu_s} {stolen_s}");
        }
    }
}
