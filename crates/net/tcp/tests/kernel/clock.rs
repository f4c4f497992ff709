//! The clock of this test: scripts on the kernel run in real time.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the kernel has no other time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
