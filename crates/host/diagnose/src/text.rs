//! Numbers in the sentences of rules.

use saiga_document::number;

/// A rate: `10,000/s`.
#[must_use]
pub(crate) fn per_second(rate: f64) -> String {
    format!("{}/s", number::value(rate))
}

/// A time in milliseconds, in the unit that fits: `56 ms`, `4.2 s`.
#[must_use]
pub(crate) fn milliseconds(ms: f64) -> String {
    number::seconds(ms / 1000.0)
}
