//! The state of one descriptor: on kernel TCP, on its channel, or between the two.

/// The state of one descriptor; the numbers are part of the page's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// The descriptor is not a socket that the library tracks.
    Unused = 0,
    /// On kernel TCP; messages are counted as evidence.
    Tracked = 1,
    /// On kernel TCP; this process listens at its control name for the peer.
    Offering = 2,
    /// On kernel TCP; this process connects to the peer's control name.
    Connecting = 3,
    /// Both directions go through the channel.
    Upgraded = 4,
    /// One direction, or its remaining bytes, is still on the other path.
    Draining = 5,
    /// Back on kernel TCP after an upgrade.
    Downgraded = 6,
    /// On kernel TCP for good; the reason says why.
    Never = 7,
    /// Reset by the library, because neither path could carry further bytes.
    Reset = 8,
}

impl State {
    /// Every state, sorted by number.
    pub const ALL: [Self; 9] = [
        Self::Unused,
        Self::Tracked,
        Self::Offering,
        Self::Connecting,
        Self::Upgraded,
        Self::Draining,
        Self::Downgraded,
        Self::Never,
        Self::Reset,
    ];

    /// Returns the state with this number; `None` for an unknown number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u32 == number)
    }

    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Tracked => "tcp",
            Self::Offering => "offering",
            Self::Connecting => "connecting",
            Self::Upgraded => "upgraded",
            Self::Draining => "draining",
            Self::Downgraded => "downgraded",
            Self::Never => "never",
            Self::Reset => "reset",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_its_number() {
        for (number, state) in (0..).zip(State::ALL) {
            assert_eq!(State::from_number(number), Some(state));
        }
        assert_eq!(State::from_number(9), None);
        assert_eq!(State::from_number(u32::MAX), None);
    }
}
