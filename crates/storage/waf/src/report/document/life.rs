//! The blocks of the report about the drive's life: used, left, and the estimated end.

use saiga_document::model::{Block, Notice};

use crate::series::Series;
use crate::wear::{Outlook, Wear, outlook};

/// Returns life used, spare blocks and warnings; no block if the drive does not report its wear.
pub(super) fn life(series: &Series) -> Vec<Block> {
    let Some(wear) = series.last().and_then(|sample| sample.wear) else {
        return Vec::new();
    };
    let mut facts = vec![
        ("Life used".to_owned(), used(&wear)),
        (
            "Spare blocks left".to_owned(),
            format!(
                "{} %; the drive warns below {} %",
                wear.spare_percent, wear.threshold_percent
            ),
        ),
    ];
    if wear.host > 0 {
        facts.push(("Written by the host (TBW)".to_owned(), terabytes(wear.host)));
    }
    if let Some(outlook) = outlook(series) {
        facts.extend(remaining(&outlook));
    }
    let mut blocks = vec![Block::Facts(facts)];
    let warnings: Vec<&str> = wear.warnings().map(|(_, meaning)| meaning).collect();
    if !warnings.is_empty() {
        blocks.push(Block::Notices(vec![Notice {
            text: format!(
                "The drive gives a critical warning: {}.",
                warnings.join("; ")
            ),
            cause: None,
            action: Some("Save its data, and plan its replacement.".to_owned()),
            about: vec![series.drive.to_string()],
        }]));
    }
    blocks
}

fn used(wear: &Wear) -> String {
    match wear.used_percent {
        u8::MAX => "255 % or more".to_owned(),
        percent => format!("{percent} %"),
    }
}

fn remaining(outlook: &Outlook) -> Vec<(String, String)> {
    let end = format!("about {}", terabytes(outlook.host_at_end));
    let mut facts = vec![("Written by the host at 100 %".to_owned(), end)];
    if let Some(pace) = outlook.pace {
        facts.push((
            "100 % reached".to_owned(),
            format!(
                "in about {:.0} days, at the rate of the {:.0} days of these samples",
                pace.left_days, pace.span_days
            ),
        ));
    }
    facts
}

/// Formats bytes in terabytes, the unit of data sheets.
fn terabytes(bytes: u128) -> String {
    format!("{:.1} TB", bytes as f64 / 1e12)
}
