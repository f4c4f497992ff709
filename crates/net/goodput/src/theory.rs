//! What models of TCP expect of one flow, in simulated time.
//!
//! CUBIC's response function is that of RFC 9438 §5.1, with the Reno-friendly window of §4.3 where
//! that is larger. Neither knows time-outs, so that they expect too much above a few percent.

use crate::cells::{Cell, MTU, RATE};

/// `C` and the factor of reduction of RFC 9438 §4.6.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Bytes of a full segment with timestamps.
const MSS: f64 = MTU as f64 - 52.0;

/// The largest goodput that the bottleneck allows, in bits per second.
#[must_use]
pub fn ceiling() -> f64 {
    RATE as f64 * MSS / f64::from(MTU)
}

/// Goodput in bits per second that the model expects at the cell's mean loss; the ceiling without
/// loss.
#[must_use]
pub fn goodput(cell: &Cell) -> f64 {
    let loss = cell.trouble.loss().mean();
    let segment_s = f64::from(MTU) * 8.0 / RATE as f64;
    // The least round trip, in which one segment is sent.
    let rtt_s = cell.rtt_us as f64 / 1e6 + segment_s;
    let window = cubic_window(loss, rtt_s).max(friendly_window(loss));
    (window * MSS * 8.0 / rtt_s).min(ceiling())
}

/// RFC 9438 §5.1 equation 5: segments.
fn cubic_window(loss: f64, rtt_s: f64) -> f64 {
    let factor = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25);
    factor * (rtt_s / loss).powf(0.75)
}

/// The window of NewReno for which §4.3 makes CUBIC compensate: that of increase 1 and decrease
/// 0.5, in segments.
fn friendly_window(loss: f64) -> f64 {
    (1.5 / loss).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9438 table 1 (RTT 0.1 s): the average window for a loss rate.
    #[test]
    fn the_response_function_matches_the_table_of_the_rfc() {
        for (loss, window) in [(1e-2, 6.0), (1e-4, 187.0), (1e-6, 5.9e3)] {
            let found: f64 = cubic_window(loss, 0.1);
            assert!((found / window - 1.0).abs() < 0.05, "{loss}: {found}");
        }
    }
}
