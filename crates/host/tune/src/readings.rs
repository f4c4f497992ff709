//! What a plan reads of a host beside the machine: current values, listening ports, processes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use saiga_topology::machine::Machine;

use crate::host::Host;
use crate::knobs;
use crate::persist::{self, grub};
use crate::target::Target;

/// The outcome of reading a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Raw(String),
    Missing,
    /// With the error's text.
    Unreadable(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readings {
    pub values: BTreeMap<Target, Reading>,
    /// The words of `/sys/kernel/security/lockdown`.
    pub lockdown: Option<String>,
    /// TCP ports on which a process listens.
    pub listening: BTreeSet<u16>,
    /// Command names of running processes.
    pub processes: BTreeSet<String>,
    /// Interrupts whose affinity only the kernel sets: they refused a write since the last boot.
    pub managed: BTreeSet<u32>,
    /// Values before the plans that are applied now
    /// ([`history::before`](crate::history::before)).
    pub before: BTreeMap<Target, String>,
    /// Whether GRUB reads drop-ins in `/etc/default/grub.d`.
    pub has_grub_drop_ins: bool,
}

impl Readings {
    /// Reads what any knob may need on this machine. `managed` is
    /// [`history::managed`](crate::history::managed).
    ///
    /// # Errors
    /// `/proc` cannot be read. A value that cannot be read is [`Reading::Unreadable`].
    pub fn read(host: &dyn Host, machine: &Machine, managed: BTreeSet<u32>) -> io::Result<Self> {
        let mut values = BTreeMap::new();
        let places = knobs::registry().flat_map(|knob| knob.places(machine));
        let targets = places.map(|place| place.target);
        for target in targets.chain(persist::targets()).chain([grub::target()]) {
            let reading = reading(host, &target);
            values.insert(target, reading);
        }
        let mut listening = BTreeSet::new();
        for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
            listening.extend(listening_ports(&host.fact(path)?.unwrap_or_default()));
        }
        let mut processes = BTreeSet::new();
        for pid in host.names("/proc")? {
            if pid.parse::<u32>().is_ok() {
                // A process may have ended since its name was listed.
                let name = host.fact(&format!("/proc/{pid}/comm"));
                processes.extend(name.ok().flatten().map(|name| name.trim().to_owned()));
            }
        }
        Ok(Self {
            values,
            lockdown: host.fact("/sys/kernel/security/lockdown").ok().flatten(),
            listening,
            processes,
            managed,
            before: BTreeMap::new(),
            has_grub_drop_ins: has_grub_drop_ins(host),
        })
    }

    /// The readings as they were before the plans that are applied now.
    pub(crate) fn rewound(&self) -> Self {
        let mut readings = self.clone();
        for (target, raw) in &self.before {
            if let Some(reading) = readings.values.get_mut(target) {
                *reading = Reading::Raw(raw.clone());
            }
        }
        readings
    }

    /// Reads further values, such as those of [`binding`](crate::persist::binding::targets).
    pub fn add(&mut self, host: &dyn Host, targets: impl Iterator<Item = Target>) {
        for target in targets {
            let reading = reading(host, &target);
            self.values.insert(target, reading);
        }
    }

    /// The raw text of a value that exists and is readable.
    #[must_use]
    pub fn raw(&self, target: &Target) -> Option<&str> {
        match self.values.get(target)? {
            Reading::Raw(raw) => Some(raw),
            Reading::Missing | Reading::Unreadable(_) => None,
        }
    }
}

/// Only the script of Debian and its descendants reads them.
fn has_grub_drop_ins(host: &dyn Host) -> bool {
    let script = host.fact(grub::MKCONFIG).ok().flatten();
    script.is_some_and(|script| script.contains(grub::DROP_INS))
}

fn reading(host: &dyn Host, target: &Target) -> Reading {
    match host.read(target) {
        Ok(Some(raw)) => Reading::Raw(raw),
        Ok(None) => Reading::Missing,
        Err(error) => Reading::Unreadable(error.to_string()),
    }
}

/// State 0A is TCP_LISTEN.
fn listening_ports(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (_, port) = local.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (state == "0A").then_some(port)
    };
    table.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_ports_are_read_from_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                     0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000\n\
                     1: 0100007F:8124 0100007F:0CEA 01 00000000:00000000\n\
                     2: 00000000:8124 00000000:0000 0A\n";
        assert_eq!(listening_ports(table), [3306, 0x8124]);
    }
}
