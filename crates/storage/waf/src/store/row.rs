//! Writes samples as rows, and reads them back. Every value is checked: the file may be from
//! another program.

use std::str::FromStr;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::moment::Moment;
use crate::sample::{DriveId, Sample, plain};
use crate::source::{Counters, MOST_BYTES, Source, Steps};
use crate::wear::Wear;

/// The columns in the order of [`sample`].
pub(super) const COLUMNS: &str = "id, unix_ms, boot, since_boot_ms, path, model, serial, \
    endurance_group, firmware, source, host_step, media_step, host_bytes, media_bytes, \
    life_used_percent, spare_percent, spare_threshold_percent, critical_warning, life_host_bytes";

/// The same columns for a file of version 1, which has no wear.
pub(super) const COLUMNS_WITHOUT_WEAR: &str = "id, unix_ms, boot, since_boot_ms, path, model, \
    serial, endurance_group, firmware, source, host_step, media_step, host_bytes, media_bytes, \
    NULL, NULL, NULL, NULL, NULL";

/// An invalid value in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The ID of the row.
    pub id: i64,
    pub column: &'static str,
    pub value: String,
}

pub(super) fn insert(connection: &Connection, sample: &Sample) -> rusqlite::Result<()> {
    let Sample {
        taken,
        path,
        drive,
        firmware,
        source,
        steps,
        counters,
        wear,
    } = sample;
    connection.execute(
        "INSERT INTO sample (unix_ms, boot, since_boot_ms, path, model, serial, endurance_group, firmware, source,
             host_step, media_step, host_bytes, media_bytes,
             life_used_percent, spare_percent, spare_threshold_percent, critical_warning, life_host_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            taken.unix_ms,
            taken.boot,
            taken.since_boot_ms,
            path,
            drive.model,
            drive.serial,
            drive.group,
            firmware,
            source.name(),
            steps.host.to_string(),
            steps.media.to_string(),
            counters.host.to_string(),
            counters.media.to_string(),
            wear.map(|wear| wear.used_percent),
            wear.map(|wear| wear.spare_percent),
            wear.map(|wear| wear.threshold_percent),
            wear.map(|wear| wear.warnings),
            wear.map(|wear| wear.host.to_string()),
        ],
    )?;
    Ok(())
}

pub(super) fn sample(row: &Row<'_>) -> Result<Sample, RowFault> {
    let id = row.get(0).unwrap_or(0);
    let fault = |column, value| RowFault { id, column, value };
    let integer = |index, column| {
        row.get::<_, i64>(index)
            .map_err(|error| fault(column, error.to_string()))
    };
    let text = |index, column| {
        let text = row
            .get::<_, String>(index)
            .map_err(|error| fault(column, error.to_string()))?;
        if text == plain(&text) {
            Ok(text)
        } else {
            Err(fault(column, text))
        }
    };
    let number = |index, column, least| {
        let text = text(index, column)?;
        let number = u128::from_str(&text).ok();
        let number = number.filter(|number| (least..=2 * MOST_BYTES).contains(number));
        number.ok_or_else(|| fault(column, text))
    };
    let byte = |index, column| {
        row.get::<_, u8>(index)
            .map_err(|error| fault(column, error.to_string()))
    };
    let has_wear = !matches!(row.get_ref(14), Ok(ValueRef::Null));
    let wear = || -> Result<Wear, RowFault> {
        Ok(Wear {
            used_percent: byte(14, "life_used_percent")?,
            spare_percent: byte(15, "spare_percent")?,
            threshold_percent: byte(16, "spare_threshold_percent")?,
            warnings: byte(17, "critical_warning")?,
            host: number(18, "life_host_bytes", 0)?,
        })
    };
    let source = text(9, "source")?;
    Ok(Sample {
        taken: Moment {
            unix_ms: integer(1, "unix_ms")?,
            boot: text(2, "boot")?,
            since_boot_ms: integer(3, "since_boot_ms")?,
        },
        path: text(4, "path")?,
        drive: DriveId {
            model: text(5, "model")?,
            serial: text(6, "serial")?,
            group: row
                .get(7)
                .map_err(|error| fault("endurance_group", error.to_string()))?,
        },
        firmware: text(8, "firmware")?,
        source: Source::from_str(&source).map_err(|_| fault("source", source))?,
        steps: Steps {
            host: number(10, "host_step", 1)?,
            media: number(11, "media_step", 1)?,
        },
        counters: Counters {
            host: number(12, "host_bytes", 0)?,
            media: number(13, "media_bytes", 0)?,
        },
        wear: if has_wear { Some(wear()?) } else { None },
    })
}
