//! Congestion avoidance and reduction of NewReno.
//!
//! Spec: RFC 5681 §3.1 equation 2 with byte counting, and equation 4.

/// Bytes that were acknowledged since the window last grew by a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NewReno {
    acked: u32,
}

impl NewReno {
    /// Grows the window by one segment for each window of acknowledged bytes.
    pub(super) fn grow(&mut self, cwnd: u32, bytes: u32, mss: u32) -> u32 {
        self.acked = self.acked.saturating_add(bytes);
        if self.acked < cwnd {
            return cwnd;
        }
        self.acked -= cwnd;
        cwnd.saturating_add(mss)
    }

    /// Half of the bytes in flight.
    pub(super) fn reduce(&mut self, in_flight: u32) -> u32 {
        self.acked = 0;
        in_flight / 2
    }
}
