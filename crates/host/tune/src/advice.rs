//! Settings that a running host cannot change itself, or that a person must decide.

mod firmware;
mod placement;
mod system;

use serde::{Deserialize, Serialize};

use crate::about::Risk;
use crate::knob::Context;

/// One piece of advice in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    pub id: String,
    pub text: String,
    /// How to see whether the host follows the advice.
    pub check: String,
    pub source: String,
    pub risk: Risk,
}

/// An entry of the list of advice.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub id: &'static str,
    pub text: &'static str,
    pub check: &'static str,
    pub source: &'static str,
    pub risk: Risk,
    /// Whether the entry is for this machine and goal.
    pub(crate) applies: fn(&Context) -> bool,
}

/// All entries, for any machine.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [firmware::ENTRIES, system::ENTRIES, placement::ENTRIES]
        .into_iter()
        .flatten()
}

/// The advice for this machine and goal.
pub(crate) fn of(context: &Context) -> Vec<Advice> {
    let applicable = entries().filter(|entry| (entry.applies)(context));
    applicable
        .map(|entry| Advice {
            id: entry.id.to_owned(),
            text: entry.text.to_owned(),
            check: entry.check.to_owned(),
            source: entry.source.to_owned(),
            risk: entry.risk,
        })
        .collect()
}

/// Whether the BIOS has the menus of procedure 004. Other Arm servers have other menus.
fn is_kunpeng_server(context: &Context) -> bool {
    let system = &context.machine.system;
    let names = [&system.cpu_model, &system.product].map(Option::as_deref);
    let of_huawei = |name: &str| {
        let makers = ["HiSilicon", "Kunpeng", "TaiShan", "Huawei"];
        makers.iter().any(|maker| name.contains(maker))
    };
    let is_arm = system.architecture == "aarch64";
    let is_huawei = names.into_iter().flatten().any(of_huawei);
    context.serves() && is_arm && is_huawei && is_bare(context)
}

/// Whether firmware is within reach: not in a virtual machine or container.
fn is_bare(context: &Context) -> bool {
    context.machine.system.virtualisation.is_none()
}

fn has_driver(context: &Context, driver: &str) -> bool {
    let mut nics = context.machine.nics.iter();
    nics.any(|nic| nic.driver.as_deref() == Some(driver))
}

fn has_nvme(context: &Context) -> bool {
    let mut disks = context.machine.disks.iter();
    disks.any(|disk| disk.name.starts_with("nvme"))
}
