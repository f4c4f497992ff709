//! The clock of the drivers.
#![expect(clippy::disallowed_methods, reason = "this program runs in real time")]

use std::time::Instant;

/// The present.
pub(crate) fn now() -> Instant {
    Instant::now()
}
