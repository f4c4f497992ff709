//! The two states of a connection in this process, and the events that change them.
//!
//! [`Mode`] says who serves the calls on the connection, [`Phase`] how far the attempt to upgrade
//! it has come. Threads share them in a [`StateCell`](saiga_channel::state::StateCell). An event
//! that a state does not know changes nothing, so a thread that comes late cannot, for example,
//! start a connection again that another thread has just put on TCP for good.
//!
//! How each direction moves its bytes is [`saiga_channel::direction`].

use saiga_channel::state::State;

/// Who serves the calls on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// The kernel.
    Plain,
    /// The channel, beside the kernel's socket.
    Bound,
    /// Neither: the last descriptor is closed, and the last caller inside cleans up. Also the mode
    /// of a free record.
    Closing,
}

/// Events of [`Mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeEvent {
    /// The record is used for a new connection.
    Open,
    /// The channel takes over.
    Bind,
    /// The kernel takes over again.
    Unbind,
    /// The last caller has left a socket without descriptors.
    Close,
}

impl State for Mode {
    type Event = ModeEvent;

    fn encode(self) -> u8 {
        self as u8
    }

    fn decode(number: u8) -> Self {
        match number {
            0 => Self::Plain,
            1 => Self::Bound,
            _ => Self::Closing,
        }
    }

    fn after(self, event: ModeEvent) -> Option<Self> {
        match (self, event) {
            (Self::Closing, ModeEvent::Open) | (Self::Bound, ModeEvent::Unbind) => {
                Some(Self::Plain)
            }
            (Self::Plain, ModeEvent::Bind) => Some(Self::Bound),
            (Self::Plain | Self::Bound, ModeEvent::Close) => Some(Self::Closing),
            (Self::Plain, ModeEvent::Open | ModeEvent::Unbind)
            | (Self::Bound, ModeEvent::Open | ModeEvent::Bind)
            | (Self::Closing, ModeEvent::Bind | ModeEvent::Unbind | ModeEvent::Close) => None,
        }
    }
}

/// The next step towards a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Gathering evidence, or waiting to try again. Also the phase of a bound connection.
    Cold,
    /// Listening on the connection's name.
    Offering,
    /// A visitor has connected and not sent its proposal yet.
    Visited,
    /// A slot is proposed, and the answer is awaited.
    Proposed,
    /// The connection is not upgraded any more.
    Never,
}

/// Events of [`Phase`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseEvent {
    /// The record is used for a new connection.
    Open,
    /// This end listens on the connection's name.
    Offer,
    /// The other end has connected to our offer.
    Visit,
    /// This end has proposed a slot. After a proposal: another slot, because the peer does not know
    /// the segment of the first one.
    Propose,
    /// The channel is in use.
    Bind,
    /// The attempt or the channel has ended, and another attempt may follow.
    Retry,
    /// The connection stays on TCP.
    Stop,
}

impl Phase {
    /// Whether an attempt is under way.
    pub(crate) fn is_under_way(self) -> bool {
        matches!(self, Self::Offering | Self::Visited | Self::Proposed)
    }
}

impl State for Phase {
    type Event = PhaseEvent;

    fn encode(self) -> u8 {
        self as u8
    }

    fn decode(number: u8) -> Self {
        match number {
            0 => Self::Cold,
            1 => Self::Offering,
            2 => Self::Visited,
            3 => Self::Proposed,
            _ => Self::Never,
        }
    }

    fn after(self, event: PhaseEvent) -> Option<Self> {
        use PhaseEvent::{Bind, Offer, Open, Propose, Retry, Stop, Visit};
        match (self, event) {
            (_, Open) => Some(Self::Cold),
            (Self::Never, Offer | Visit | Propose | Bind | Retry | Stop) => None,
            (_, Stop) => Some(Self::Never),
            (_, Retry) | (Self::Visited | Self::Proposed, Bind) => Some(Self::Cold),
            (Self::Cold, Offer) => Some(Self::Offering),
            (Self::Offering, Visit) => Some(Self::Visited),
            (Self::Cold | Self::Proposed, Propose) => Some(Self::Proposed),
            (Self::Cold, Visit | Bind)
            | (Self::Offering, Offer | Propose | Bind)
            | (Self::Visited, Offer | Visit | Propose)
            | (Self::Proposed, Offer | Visit) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PhaseEvent::{Bind, Offer, Open, Propose, Retry, Stop, Visit};

    const MODES: [Mode; 3] = [Mode::Plain, Mode::Bound, Mode::Closing];
    const PHASES: [Phase; 5] = [
        Phase::Cold,
        Phase::Offering,
        Phase::Visited,
        Phase::Proposed,
        Phase::Never,
    ];

    #[test]
    fn every_mode_and_event() {
        use ModeEvent::{Bind, Close, Open, Unbind};
        let table = [
            (Open, [None, None, Some(Mode::Plain)]),
            (Bind, [Some(Mode::Bound), None, None]),
            (Unbind, [None, Some(Mode::Plain), None]),
            (Close, [Some(Mode::Closing), Some(Mode::Closing), None]),
        ];
        for (event, next) in table {
            assert_eq!(MODES.map(|mode| mode.after(event)), next, "{event:?}");
        }
    }

    #[test]
    fn every_phase_and_event() {
        let (cold, never) = (Some(Phase::Cold), Some(Phase::Never));
        let proposed = Some(Phase::Proposed);
        // From:    cold, offering, visited, proposed, never
        let table = [
            (Open, [cold; 5]),
            (Offer, [Some(Phase::Offering), None, None, None, None]),
            (Visit, [None, Some(Phase::Visited), None, None, None]),
            (Propose, [proposed, None, None, proposed, None]),
            (Bind, [None, None, cold, cold, None]),
            (Retry, [cold, cold, cold, cold, None]),
            (Stop, [never, never, never, never, None]),
        ];
        for (event, next) in table {
            assert_eq!(PHASES.map(|phase| phase.after(event)), next, "{event:?}");
        }
    }

    #[test]
    fn numbers_stand_for_the_states_that_they_were_made_from() {
        assert_eq!(MODES.map(|mode| Mode::decode(mode.encode())), MODES);
        assert_eq!(PHASES.map(|phase| Phase::decode(phase.encode())), PHASES);
    }
}
