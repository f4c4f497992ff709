//! Tail loss probes: one segment shortly after the last, so that a lost tail is found by an
//! acknowledgement instead of a time-out.
//!
//! Spec: RFC 8985 §7. Tells when a probe is due; recognises by later acknowledgements whether the
//! probe repaired a loss.
//!
//! Deliberately absent: what a probe sends, see `transmit`.

use saiga_wire::SeqNum;

use crate::time::Micros;

/// Longest delay of an acknowledgement that a probe waits for (`TLP.max_ack_delay`); Linux delays
/// up to 200 ms.
const MAX_ACK_DELAY: Micros = Micros::from_millis(200);
/// The time-out without a sample (§7.2).
const UNKNOWN: Micros = Micros::from_secs(1);
/// The least time-out, so that the clock of a driver that polls seldom does not cause probes.
const LEAST: Micros = Micros::from_millis(2);

/// A probe that is not yet answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tlp {
    /// `SND.NXT` after the probe (`TLP.end_seq`), and whether the probe was a retransmission.
    probe: Option<(SeqNum, bool)>,
}

/// What an acknowledgement says about a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is no probe, or it is not answered yet.
    None,
    /// Nothing was lost.
    NoLoss,
    /// The probe repaired a loss, to which congestion control must react (§7.4.2).
    Repaired,
}

/// What the answer to a probe depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    pub(crate) ack: SeqNum,
    /// Whether a duplicate selective acknowledgement ends at the probe's end.
    pub(crate) is_dsack_of_probe: bool,
    /// Whether the number repeats that of the acknowledgement before, without data.
    pub(crate) is_duplicate: bool,
    /// Whether selective acknowledgements came with it.
    pub(crate) has_sack: bool,
}

impl Tlp {
    /// The time-out of a probe (§7.2). `is_single`: at most one segment is in flight, whose
    /// acknowledgement the peer may delay.
    pub(crate) fn timeout(srtt: Option<Micros>, is_single: bool) -> Micros {
        let Some(srtt) = srtt else {
            return UNKNOWN;
        };
        let delay = if is_single {
            MAX_ACK_DELAY
        } else {
            Micros::ZERO
        };
        (srtt.times(2) + delay).max(LEAST)
    }

    /// Whether a probe may be sent: not before the last one is answered (§7.3).
    pub(crate) fn may_probe(&self) -> bool {
        self.probe.is_none()
    }

    /// The end of the probe that is not yet answered.
    pub(crate) fn end(&self) -> Option<SeqNum> {
        self.probe.map(|(end, _)| end)
    }

    pub(crate) fn on_probe(&mut self, nxt: SeqNum, is_retransmission: bool) {
        self.probe = Some((nxt, is_retransmission));
    }

    /// Forgets the probe when recovery begins.
    pub(crate) fn reset(&mut self) {
        self.probe = None;
    }

    /// Takes an acknowledgement (§7.4.2).
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Answer {
        let Some((end, is_retransmission)) = self.probe else {
            return Answer::None;
        };
        if ack.ack.before(end) {
            return Answer::None;
        }
        if !is_retransmission || ack.is_dsack_of_probe {
            self.probe = None;
            return Answer::NoLoss;
        }
        if ack.ack.after(end) {
            self.probe = None;
            return Answer::Repaired;
        }
        // Both copies of the probe have arrived.
        if ack.is_duplicate && !ack.has_sack {
            self.probe = None;
            return Answer::NoLoss;
        }
        Answer::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: SeqNum = SeqNum(5000);

    fn ack(number: u32) -> Ack {
        Ack {
            ack: SeqNum(number),
            is_dsack_of_probe: false,
            is_duplicate: false,
            has_sack: false,
        }
    }

    /// RFC 8985 §7.4.2, one row for each branch.
    #[test]
    fn an_acknowledgement_tells_whether_the_probe_repaired_a_loss() {
        let with = |edit: fn(&mut Ack)| {
            let mut ack = ack(5000);
            edit(&mut ack);
            ack
        };
        for (name, is_retransmission, ack, answer, is_open) in [
            ("before the probe", true, ack(4000), Answer::None, true),
            ("of new data", false, ack(5000), Answer::NoLoss, false),
            ("beyond the probe", true, ack(6000), Answer::Repaired, false),
            ("of the probe", true, ack(5000), Answer::None, true),
            (
                "with a duplicate selective acknowledgement",
                true,
                with(|ack| ack.is_dsack_of_probe = true),
                Answer::NoLoss,
                false,
            ),
            (
                "a duplicate",
                true,
                with(|ack| ack.is_duplicate = true),
                Answer::NoLoss,
                false,
            ),
            (
                "a duplicate with selective acknowledgements",
                true,
                with(|ack| (ack.is_duplicate, ack.has_sack) = (true, true)),
                Answer::None,
                true,
            ),
        ] {
            let mut tlp = Tlp::default();
            assert_eq!(tlp.on_ack(&ack), Answer::None);
            tlp.on_probe(END, is_retransmission);
            assert!(!tlp.may_probe());
            assert_eq!(tlp.on_ack(&ack), answer, "{name}");
            assert_eq!(tlp.end().is_some(), is_open, "{name}");
        }
    }

    #[test]
    fn a_probe_waits_for_two_round_trips_and_a_delayed_acknowledgement() {
        let millis = |ms| Some(Micros::from_millis(ms));
        for (srtt, is_single, expected_ms) in [
            (None, true, 1000),
            (millis(50), false, 100),
            (millis(50), true, 300),
            (Some(Micros(80)), false, 2),
        ] {
            let found = Tlp::timeout(srtt, is_single).as_millis();
            assert_eq!(found, expected_ms, "{srtt:?} {is_single}");
        }
    }
}
