//! Bytes written to the devices of the labelled directories, by hint, counted at the block layer.
//!
//! Counts the writes of every process and of the file system itself, whose own writes have no hint.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use saiga_blocktrace::{Device, HintMeter, MeterError};

use crate::hint::Hint;
use crate::route::System;

/// A running count, which ends when this value is dropped.
#[derive(Debug)]
pub struct Traffic {
    meter: HintMeter,
    system: System,
}

/// Bytes written to a device with one hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The kernel's name of the disk or partition.
    pub device: String,
    /// `None` if the kernel does not report hints (before Linux 6.9) or reports an unknown one.
    pub hint: Option<Hint>,
    /// Bytes since the start of the count.
    pub bytes: u64,
}

impl Traffic {
    /// Starts the count.
    ///
    /// # Errors
    /// The kernel does not permit BPF to this process.
    pub fn open(system: System) -> Result<Self, MeterError> {
        // The labelled file systems change: count all devices, and select them at each read.
        let meter = HintMeter::open(&[])?;
        Ok(Self { meter, system })
    }

    /// Returns the bytes written to the devices of `file_systems`, by device and hint.
    ///
    /// # Errors
    /// The BPF map cannot be read.
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

    /// Returns the number of writes that were not counted.
    ///
    /// # Errors
    /// The BPF map cannot be read.
    pub fn lost(&self) -> Result<u64, MeterError> {
        self.meter.lost()
    }
}

/// Formats the counts for Prometheus.
pub(crate) fn to_text(rows: &[Written], lost: u64) -> String {
    let name = "saiga_streams_written_bytes_total";
    let mut out = format!(
        "# HELP {name} Bytes written to the devices of the directories by all processes, by hint.\n\
         # TYPE {name} counter\n"
    );
    for Written {
        device,
        hint,
        bytes,
    } in rows
    {
        let hint = label(*hint);
        let _ = writeln!(out, "{name}{{device=\"{device}\",hint=\"{hint}\"}} {bytes}");
    }
    let name = "saiga_streams_writes_uncounted_total";
    let _ = writeln!(
        out,
        "# HELP {name} Writes that are missing from the bytes by hint.\n\
         # TYPE {name} counter\n{name} {lost}"
    );
    out
}

/// Returns the value of the label `hint`; the name of [`Hint::NotSet`], a dash, would be unclear.
fn label(hint: Option<Hint>) -> &'static str {
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
