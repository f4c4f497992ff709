//! Formats intervals as CSV (RFC 4180), one row each.

use crate::series::Series;

const COLUMNS: [&str; 17] = [
    "model",
    "serial",
    "endurance_group",
    "segment",
    "source",
    "start",
    "end",
    "seconds",
    "host_bytes",
    "media_bytes",
    "waf",
    "waf_low",
    "waf_high",
    "host_error_bytes",
    "media_error_bytes",
    "coarse",
    "reboot",
];

/// Formats all intervals below a header. The factor of an idle interval is empty.
///
/// # Errors
/// Never in practice: the table is in memory.
pub fn csv(all: &[Series]) -> Result<String, ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(Vec::new());
    table.write_record(COLUMNS)?;
    for series in all {
        for (index, segment) in series.segments.iter().enumerate() {
            for interval in &segment.intervals {
                let written = interval.written;
                let waf = written.waf();
                let or_empty =
                    |value: Option<f64>| value.map_or_else(String::new, |it| it.to_string());
                table.write_record([
                    series.drive.model.clone(),
                    series.drive.serial.clone(),
                    series
                        .drive
                        .group
                        .map_or_else(String::new, |group| group.to_string()),
                    (index + 1).to_string(),
                    segment.first.source.to_string(),
                    interval.start.rfc3339(),
                    interval.end.rfc3339(),
                    or_empty(interval.seconds()),
                    written.host.to_string(),
                    written.media.to_string(),
                    or_empty(waf.map(|waf| waf.value)),
                    or_empty(waf.map(|waf| waf.low)),
                    or_empty(waf.and_then(|waf| waf.high)),
                    written.host_error.to_string(),
                    written.media_error.to_string(),
                    waf.is_some_and(|waf| waf.is_coarse).to_string(),
                    interval.has_reboot().to_string(),
                ])?;
            }
        }
    }
    let bytes = table
        .into_inner()
        .map_err(|error| ::csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
