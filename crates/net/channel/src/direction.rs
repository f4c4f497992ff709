//! How one side of a channel moves the bytes of each direction: by TCP or by the ring.
//!
//! Both directions begin on TCP, switch to the ring once and end on TCP. All processes that have
//! the connection open share these states; the peer does not see them.

use crate::state::State;

/// Where received bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RxMode {
    /// TCP; the peer has not switched yet.
    Tcp,
    /// TCP until a number of remaining bytes is read, then the ring.
    Drain,
    /// The ring.
    Ring,
    /// TCP: the ring has ended and is empty.
    After,
}

/// Events of [`RxMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RxEvent {
    /// The slot is used for a new connection.
    Open,
    /// The peer has switched, and bytes that it sent before are still on TCP.
    Drain,
    /// The peer has switched, and TCP has no byte before the ring any more.
    Switch,
    /// The ring has ended and is empty, or its bytes come by TCP.
    End,
}

impl State for RxMode {
    type Event = RxEvent;

    fn encode(self) -> u8 {
        self as u8
    }

    fn decode(number: u8) -> Self {
        match number {
            0 => Self::Tcp,
            1 => Self::Drain,
            2 => Self::Ring,
            _ => Self::After,
        }
    }

    fn after(self, event: RxEvent) -> Option<Self> {
        match (self, event) {
            (_, RxEvent::Open) => Some(Self::Tcp),
            (Self::Tcp, RxEvent::Drain) => Some(Self::Drain),
            (Self::Tcp | Self::Drain, RxEvent::Switch) => Some(Self::Ring),
            (Self::Tcp | Self::Drain | Self::Ring, RxEvent::End) => Some(Self::After),
            (Self::Drain, RxEvent::Drain)
            | (Self::Ring, RxEvent::Drain | RxEvent::Switch)
            | (Self::After, RxEvent::Drain | RxEvent::Switch | RxEvent::End) => None,
        }
    }
}

/// Where sent bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TxMode {
    /// TCP; the peer is not ready for the ring yet.
    Tcp,
    /// The ring.
    Ring,
    /// Nowhere: the ring has ended, and TCP follows once the peer has acknowledged the switch to
    /// the ring.
    Ended,
    /// TCP: the ring has ended.
    After,
}

/// Events of [`TxMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxEvent {
    /// The slot is used for a new connection.
    Open,
    /// The next byte goes into the ring.
    Switch,
    /// The ring has ended. A ring that was never used is followed by TCP at once.
    End,
    /// The peer knows of the ring, or needs not to: TCP goes on.
    GoByTcp,
    /// The peer has recalled bytes of the ring, which must go before any others.
    Recall,
}

impl State for TxMode {
    type Event = TxEvent;

    fn encode(self) -> u8 {
        self as u8
    }

    fn decode(number: u8) -> Self {
        match number {
            0 => Self::Tcp,
            1 => Self::Ring,
            2 => Self::Ended,
            _ => Self::After,
        }
    }

    fn after(self, event: TxEvent) -> Option<Self> {
        match (self, event) {
            (_, TxEvent::Open) => Some(Self::Tcp),
            (Self::Tcp, TxEvent::Switch) => Some(Self::Ring),
            (Self::Ring, TxEvent::End) | (Self::After, TxEvent::Recall) => Some(Self::Ended),
            (Self::Tcp, TxEvent::End) | (_, TxEvent::GoByTcp) => Some(Self::After),
            (Self::Tcp | Self::Ring | Self::Ended, TxEvent::Recall)
            | (Self::Ring | Self::Ended | Self::After, TxEvent::Switch)
            | (Self::Ended | Self::After, TxEvent::End) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RX: [RxMode; 4] = [RxMode::Tcp, RxMode::Drain, RxMode::Ring, RxMode::After];
    const TX: [TxMode; 4] = [TxMode::Tcp, TxMode::Ring, TxMode::Ended, TxMode::After];

    #[test]
    fn every_receiving_state_and_event() {
        let [tcp, drain, ring, after] = RX.map(Some);
        // From:            tcp, drain, ring, after
        let table = [
            (RxEvent::Open, [tcp, tcp, tcp, tcp]),
            (RxEvent::Drain, [drain, None, None, None]),
            (RxEvent::Switch, [ring, ring, None, None]),
            (RxEvent::End, [after, after, after, None]),
        ];
        for (event, next) in table {
            assert_eq!(RX.map(|mode| mode.after(event)), next, "{event:?}");
        }
    }

    #[test]
    fn every_sending_state_and_event() {
        let [tcp, ring, ended, after] = TX.map(Some);
        // From:            tcp, ring, ended, after
        let table = [
            (TxEvent::Open, [tcp, tcp, tcp, tcp]),
            (TxEvent::Switch, [ring, None, None, None]),
            (TxEvent::End, [after, ended, None, None]),
            (TxEvent::GoByTcp, [after, after, after, after]),
            (TxEvent::Recall, [None, None, None, ended]),
        ];
        for (event, next) in table {
            assert_eq!(TX.map(|mode| mode.after(event)), next, "{event:?}");
        }
    }

    #[test]
    fn numbers_stand_for_the_states_that_they_were_made_from() {
        assert_eq!(RX.map(|mode| RxMode::decode(mode.encode())), RX);
        assert_eq!(TX.map(|mode| TxMode::decode(mode.encode())), TX);
    }
}
