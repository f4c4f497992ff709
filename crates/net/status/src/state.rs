//! Where one descriptor stands between kernel TCP and its channel.

/// The state of one descriptor; the numbers are part of the page's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// No socket that the library follows.
    Unused = 0,
    /// On kernel TCP; evidence is being counted.
    Tracked = 1,
    /// On kernel TCP; our control name waits for the peer.
    Offering = 2,
    /// On kernel TCP; we ask for the peer's control name.
    Connecting = 3,
    /// Both directions go through the channel.
    Upgraded = 4,
    /// One direction, or a rest of bytes, is still on the other path.
    Draining = 5,
    /// Back on kernel TCP after an upgrade.
    Downgraded = 6,
    /// On kernel TCP for good; the reason says why.
    Never = 7,
    /// Reset by the library, because neither path could carry it on.
    Reset = 8,
}

impl State {
    /// Every state, in the order of its number.
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

    /// The state with this number; `None` for a number that no version we know writes.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u32 == number)
    }

    /// The word for tables and JSON.
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
    fn numbers_are_indices() {
        for (number, state) in (0..).zip(State::ALL) {
            assert_eq!(State::from_number(number), Some(state));
        }
        assert_eq!(State::from_number(9), None);
        assert_eq!(State::from_number(u32::MAX), None);
    }
}
