//! Follows writes on FDP namespaces: the bytes that the kernel wrote to the namespace of each part,
//! and the bytes that the drive counted at its reclaim unit handle.

use std::time::{Duration, Instant};

use saiga_document::number;
use saiga_document::table::Table;
use saiga_process::interrupt::Interrupt;
use saiga_streams::route::{System, Written};
use saiga_waf::Drive;
use saiga_waf::placement::{Meter, Unit, units};
use serde_json::{Value, json};

use crate::VerifyError;
use crate::placement::PartPlacement;

/// Time between two reads of the handles. Counts are right if less than one reclaim unit is written
/// to a handle in this time.
const PAUSE: Duration = Duration::from_millis(100);

/// A part whose writes are being measured.
struct Followed {
    part: &'static str,
    disk: String,
    nsid: u32,
    handle: u16,
    block: u64,
    drive: Box<dyn Drive>,
    before: Written,
    left: u64,
    meter: Meter,
}

/// The measured writes to a part.
#[derive(Debug)]
struct Row {
    part: &'static str,
    disk: String,
    handle: u16,
    /// Bytes that the kernel wrote.
    written: u64,
    /// Whether requests were in flight at the end.
    is_busy: bool,
    /// Bytes that the drive counted at the handle.
    counted: u64,
    /// Bytes left in the handle's reclaim unit before and after.
    left: [u64; 2],
}

/// The measured writes to the parts of servers.
#[derive(Debug)]
pub struct HandleWrites {
    time: Duration,
    rows: Vec<Row>,
}

/// Measures writes for `time`, or until Ctrl-C. `say` receives the progress.
///
/// # Errors
/// A drive cannot be opened (needs root), or does not report its handles.
pub fn follow<'a>(
    system: &System,
    servers: impl Iterator<Item = &'a PartPlacement>,
    time: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<HandleWrites, VerifyError> {
    let interrupt = Interrupt::on_signals().map_err(VerifyError::Interrupt)?;
    let start = Instant::now();
    let mut all = Vec::new();
    for spread in servers {
        for part in &spread.layout.parts {
            for disk in part.places.iter().filter_map(|place| place.disk.as_deref()) {
                all.extend(begin(system, spread, part.name, disk)?);
            }
        }
    }
    say(&format!(
        "following {} reclaim unit handles for {}",
        all.len(),
        number::time(time)
    ));
    // `None` if the end is beyond the range of the clock.
    let end = start.checked_add(time);
    loop {
        let is_interrupted = interrupt.wait(PAUSE).map_err(VerifyError::Interrupt)?;
        let is_over = is_interrupted || end.is_some_and(|end| Instant::now() >= end);
        for followed in &mut all {
            let now = read_units(followed.drive.as_mut(), followed.nsid, &followed.disk)?;
            followed.meter.step(now);
        }
        if is_over {
            break;
        }
    }
    let time = start.elapsed();
    let rows = all.into_iter().map(|followed| followed.end(system));
    Ok(HandleWrites {
        time,
        rows: rows.collect::<Result<_, _>>()?,
    })
}

/// Starts a measurement. The kernel's count is read before that of the handle, and
/// [`Followed::end`] reads it after that of the handle: a write between the two reads may be
/// missing at the handle, but never at the kernel.
fn begin(
    system: &System,
    spread: &PartPlacement,
    part: &'static str,
    disk: &str,
) -> Result<Option<Followed>, VerifyError> {
    let namespace = spread.namespace(disk);
    let Some((namespace, placement)) = namespace.zip(spread.known.get(disk)) else {
        return Ok(None);
    };
    let block = system.block_bytes(disk)?;
    let before = system.written(disk)?;
    let mut drive = saiga_waf::open(&system.device(disk))?;
    let mut placement = placement.clone();
    placement.units = read_units(drive.as_mut(), namespace.id, disk)?;
    let meter = Meter::new(&placement, block);
    Ok(Some(Followed {
        part,
        disk: disk.to_owned(),
        nsid: namespace.id,
        handle: placement.handle,
        block,
        drive,
        before,
        left: meter.left(),
        meter,
    }))
}

fn read_units(drive: &mut dyn Drive, nsid: u32, disk: &str) -> Result<Vec<Unit>, VerifyError> {
    units(drive, nsid).map_err(|error| VerifyError::Placement {
        disk: disk.to_owned(),
        error,
    })
}

impl Followed {
    fn end(self, system: &System) -> Result<Row, VerifyError> {
        let after = system.written(&self.disk)?;
        let bytes = |blocks: u64| blocks.saturating_mul(self.block);
        Ok(Row {
            part: self.part,
            handle: self.handle,
            written: after.bytes.saturating_sub(self.before.bytes),
            is_busy: after.is_busy,
            counted: bytes(self.meter.written()),
            left: [bytes(self.left), bytes(self.meter.left())],
            disk: self.disk,
        })
    }
}

impl Row {
    fn fault(&self) -> Option<String> {
        let (part, disk, handle) = (self.part, &self.disk, self.handle);
        match (self.written, self.counted) {
            (0, counted) if counted > 0 && !self.is_busy => Some(format!(
                "{part}: {} were written through handle {handle}, but nothing to {disk}: another \
                 namespace also uses this handle",
                number::bytes(counted)
            )),
            (written, 0) if written > 0 => Some(format!(
                "{part}: {} were written to {disk}, but nothing through its handle {handle}; the \
                 drive may count in large steps: measure for longer, under load",
                number::bytes(written)
            )),
            _ => None,
        }
    }
}

impl HandleWrites {
    /// Whether the kernel wrote to a part, and the handle of each part counted if, and only if, the
    /// kernel wrote to that part.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.is_written() && self.rows.iter().all(|row| row.fault().is_none())
    }

    fn is_written(&self) -> bool {
        self.rows.iter().any(|row| row.written > 0)
    }

    /// Says which parts were not written: their handles are unproven.
    fn unproven(&self) -> String {
        if !self.is_written() {
            return "nothing was written, so handles are unproven: measure for longer, under load\n"
                .to_owned();
        }
        let idle = self.rows.iter().filter(|row| row.written == 0);
        let line = |row: &Row| {
            let (part, handle) = (row.part, row.handle);
            format!("{part}: nothing was written, so handle {handle} is unproven\n")
        };
        idle.filter(|row| row.fault().is_none()).map(line).collect()
    }

    #[must_use]
    pub fn to_text(&self) -> String {
        let mut table = Table::new([
            "part",
            "disk",
            "written",
            "handle",
            "through handle",
            "left in unit before",
            "after",
        ]);
        for row in &self.rows {
            table.row([
                row.part.to_owned(),
                row.disk.clone(),
                number::bytes(row.written),
                row.handle.to_string(),
                number::bytes(row.counted),
                number::bytes(row.left[0]),
                number::bytes(row.left[1]),
            ]);
        }
        let faults = self.rows.iter().filter_map(Row::fault);
        let faults: String = faults.map(|fault| fault + "\n").collect();
        let (time, unproven) = (number::time(self.time), self.unproven());
        format!("\nwritten in {time}:\n{table}{faults}{unproven}")
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "part": row.part,
                "disk": row.disk,
                "written_bytes": row.written,
                "handle": row.handle,
                "handle_bytes": row.counted,
                "left_bytes_before": row.left[0],
                "left_bytes_after": row.left[1],
                "is_well": row.fault().is_none(),
            })
        });
        json!({
            "seconds": self.time.as_secs_f64(),
            "parts": rows.collect::<Vec<_>>(),
            "is_well": self.is_well(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(rows: &[(u64, u64)]) -> HandleWrites {
        let row = |(&(written, counted), handle)| Row {
            part: ["wal", "data"][usize::from(handle)],
            disk: "nvme0n1".to_owned(),
            handle,
            written,
            is_busy: false,
            counted,
            left: [0, 0],
        };
        HandleWrites {
            time: Duration::from_secs(1),
            rows: rows.iter().zip(0_u16..).map(row).collect(),
        }
    }

    #[test]
    fn handles_are_unproven_without_a_write() {
        let idle = measured(&[(0, 0), (0, 0)]);
        assert!(!idle.is_well());
        assert_eq!(idle.as_json()["is_well"], false);
        assert!(idle.to_text().ends_with(
            "\nnothing was written, so handles are unproven: measure for longer, under load\n"
        ));
        assert!(!measured(&[]).is_well());
        let one = measured(&[(0, 0), (4096, 4096)]);
        assert!(one.is_well());
        assert!(
            one.to_text()
                .ends_with("\nwal: nothing was written, so handle 0 is unproven\n")
        );
    }

    #[test]
    fn bytes_at_the_wrong_handle_are_a_fault() {
        for rows in [[(0, 4096), (4096, 4096)], [(4096, 0), (4096, 4096)]] {
            let measured = measured(&rows);
            assert!(!measured.is_well());
            assert!(!measured.to_text().contains("unproven"));
        }
    }
}
