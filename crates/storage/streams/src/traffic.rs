//! Bytes written to the devices of the directories, by hint, counted by the kernel where it submits them.
//!
//! This is what the block layer got, whoever wrote it: the file system's own writes have no hint.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use saiga_blocktrace::{Device, HintMeter, MeterError};

use crate::hint::Hint;
use crate::route::System;

/// Counts until it is dropped.
#[derive(Debug)]
pub struct Traffic {
    meter: HintMeter,
    system: System,
}

/// What was written to a device under one hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The disk or partition, as the kernel calls it.
    pub device: String,
    /// The hint; `None` where the kernel does not say (before Linux 6.9) or says one that is not known here.
    pub hint: Option<Hint>,
    /// Since the count began.
    pub bytes: u64,
}

impl Traffic {
    /// Begins to count.
    ///
    /// # Errors
    /// The kernel does not permit it.
    pub fn open(system: System) -> Result<Self, MeterError> {
        // File systems come and go below a labeller, so all devices are counted, and told from each other when it is read.
        let meter = HintMeter::open(&[])?;
        Ok(Self { meter, system })
    }

    /// What was written to the devices of these file systems, by device and hint.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn read(&self, file_systems: &HashSet<(u32, u32)>) -> Result<Vec<Written>, MeterError> {
        let devices: BTreeSet<Device> = file_systems
            .iter()
            .filter_map(|device| self.system.block_device(*device))
            .map(|(major, minor)| Device { major, minor })
            .collect();
        let rows = self.meter.read()?.into_iter();
        let rows = rows.filter(|row| devices.contains(&row.device));
        let rows = rows.map(|row| Written {
            device: (row.device.name()).unwrap_or_else(|_| row.device.to_string()),
            hint: row.hint.and_then(|raw| Hint::from_raw(raw.into())),
            bytes: row.bytes,
        });
        Ok(rows.collect())
    }

    /// How many writes were not counted.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn lost(&self) -> Result<u64, MeterError> {
        self.meter.lost()
    }
}

/// As Prometheus reads it.
pub(crate) fn to_text(rows: &[Written], lost: u64) -> String {
    let name = "saiga_streams_written_bytes_total";
    let mut out = format!(
        "# HELP {name} Bytes written to the devices of the directories, by hint, whoever wrote them.\n# TYPE {name} counter\n"
    );
    for Written {
        device,
        hint,
        bytes,
    } in rows
    {
        let hint = word(*hint);
        let _ = writeln!(out, "{name}{{device=\"{device}\",hint=\"{hint}\"}} {bytes}");
    }
    let name = "saiga_streams_writes_uncounted_total";
    let _ = writeln!(
        out,
        "# HELP {name} Writes that are missing from the bytes by hint.\n# TYPE {name} counter\n{name} {lost}"
    );
    out
}

/// A hint as a label: a dash would be none.
fn word(hint: Option<Hint>) -> &'static str {
    match hint {
        None => "unknown",
        Some(Hint::NotSet) => "unset",
        Some(hint) => hint.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_of_each_device_is_a_series() {
        let row = |hint, bytes| Written {
            device: "nvme0n1".to_owned(),
            hint,
            bytes,
        };
        let rows = [
            row(Some(Hint::NotSet), 4096),
            row(Some(Hint::Short), 8192),
            row(None, 1),
        ];
        let text = to_text(&rows, 3);
        for line in [
            "saiga_streams_written_bytes_total{device=\"nvme0n1\",hint=\"unset\"} 4096\n",
            "saiga_streams_written_bytes_total{device=\"nvme0n1\",hint=\"short\"} 8192\n",
            "saiga_streams_written_bytes_total{device=\"nvme0n1\",hint=\"unknown\"} 1\n",
            "saiga_streams_writes_uncounted_total 3\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
