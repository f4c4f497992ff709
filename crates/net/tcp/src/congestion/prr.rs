//! Proportional rate reduction: how fast recovery reduces what is in flight.
//!
//! Spec: RFC 6937 §3 as RFC 9937 §6 revises it. For each acknowledgement during recovery, gives the
//! number of bytes that may be sent, so that `ssthresh` is reached at the end of recovery, and
//! bursts after large losses are small. Below `ssthresh`, the pipe grows as in slow start only
//! while acknowledgements make progress without further losses: where `ssthresh` is more than the
//! path holds, retransmissions would be lost again and again otherwise.

/// Bytes in one episode of recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    /// Delivered and sent since recovery began.
    delivered: u32,
    out: u32,
    /// In flight when recovery began (`RecoverFS`).
    recover_fs: u32,
}

/// What one acknowledgement says during recovery. All of it is bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// Delivered for the first time.
    pub(crate) delivered: u32,
    /// In the network.
    pub(crate) pipe: u32,
    pub(crate) ssthresh: u32,
    /// A segment if the acknowledgement moved `SND.UNA` and showed no further loss (`SafeACK`), or
    /// 0.
    pub(crate) growth: u32,
}

impl Prr {
    /// Begins recovery with this many bytes in flight.
    pub(crate) fn new(in_flight: u32) -> Self {
        Self {
            recover_fs: in_flight.max(1),
            ..Self::default()
        }
    }

    /// Takes an acknowledgement; returns how many bytes may be sent.
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> u32 {
        let Ack {
            delivered,
            pipe,
            ssthresh,
            growth,
        } = *ack;
        self.delivered = self.delivered.saturating_add(delivered);
        if pipe > ssthresh {
            // The proportional part.
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let due = share.div_ceil(u64::from(self.recover_fs));
            let due = u32::try_from(due).unwrap_or(u32::MAX);
            return due.saturating_sub(self.out);
        }
        let behind = self.delivered.saturating_sub(self.out);
        let limit = behind.max(delivered).saturating_add(growth);
        limit.min(ssthresh - pipe)
    }

    /// Counts bytes that were sent during recovery, first time or again.
    pub(crate) fn on_send(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement of one segment of 1000 bytes, with a threshold of ten.
    fn ack(pipe: u32, growth: u32) -> Ack {
        Ack {
            delivered: 1000,
            pipe,
            ssthresh: 10_000,
            growth,
        }
    }

    /// The example of a single loss in a window of 20 segments: 19 acknowledgements of one segment
    /// each, a reduction to 10.
    #[test]
    fn a_single_loss_sends_one_segment_for_two_acknowledgements() {
        let mut prr = Prr::new(20_000);
        let mut pipe: u32 = 19_000;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= 1000;
            let may = prr.on_ack(&ack(pipe, 0)) / 1000 * 1000;
            prr.on_send(may);
            pipe += may;
            sent += may;
        }
        // Half as much was sent as was delivered, and then what is missing at the threshold.
        assert_eq!((sent, pipe), (10_000, 10_000));
    }

    #[test]
    fn the_proportion_is_rounded_up() {
        let mut prr = Prr::new(30_000);
        // A third of 1000 bytes.
        assert_eq!(prr.on_ack(&ack(20_000, 0)), 334);
    }

    /// Fifteen of twenty segments are lost: slow start from what is left.
    #[test]
    fn after_a_large_loss_the_pipe_grows_as_in_slow_start() {
        let mut prr = Prr::new(20_000);
        // Lost segments left the pipe: four are left, of which one is acknowledged.
        assert_eq!(prr.on_ack(&ack(4000, 1000)), 2000);
        prr.on_send(2000);
        assert_eq!(prr.on_ack(&ack(5000, 1000)), 2000);
        prr.on_send(2000);
        assert_eq!(prr.on_ack(&ack(9500, 1000)), 500);
    }

    /// As long as losses go on, the pipe stays as it is.
    #[test]
    fn without_progress_the_pipe_does_not_grow() {
        let mut prr = Prr::new(20_000);
        assert_eq!(prr.on_ack(&ack(4000, 0)), 1000);
        prr.on_send(1000);
        assert_eq!(prr.on_ack(&ack(4000, 0)), 1000);
        prr.on_send(1000);
        assert_eq!(prr.on_ack(&ack(4000, 1000)), 2000);
    }

    #[test]
    fn nothing_is_sent_above_the_threshold_for_too_few_deliveries() {
        let mut prr = Prr::new(20_000);
        let none = Ack {
            delivered: 0,
            ..ack(19_000, 0)
        };
        assert_eq!(prr.on_ack(&none), 0);
        assert_eq!(prr.on_ack(&ack(18_000, 0)), 500);
        assert_eq!(prr.on_ack(&ack(17_000, 0)), 1000);
    }
}
