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

/// A computed number of bytes: `3.52 MiB`. Negative numbers are 0.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
pub(crate) fn bytes(count: f64) -> String {
    number::bytes(count as u64)
}
