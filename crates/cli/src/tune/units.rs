//! The systemd units that a plan binds to the cores of their servers.

use saiga_tune::cores::starts::Start;
use saiga_tune::persist::binding::Bindings;

/// The drop-ins of services, one for each instance. A name without an ending is that of a service.
pub(super) fn bindings(starts: &[Start], units: &[String]) -> anyhow::Result<Bindings> {
    if units.is_empty() {
        return Ok(Bindings::new());
    }
    anyhow::ensure!(
        !starts.is_empty(),
        "the server may use all CPUs, so there is nothing to bind; leave out --unit"
    );
    anyhow::ensure!(
        units.len() == starts.len(),
        "there are {} instances and {} units; give one --unit for each instance",
        starts.len(),
        units.len()
    );
    let full = |unit: &String| {
        if unit.ends_with(".service") {
            unit.clone()
        } else {
            format!("{unit}.service")
        }
    };
    let pairs = units.iter().map(full).zip(starts);
    Ok(pairs
        .map(|(unit, start)| (unit, start.systemd.clone()))
        .collect())
}
