//! What a call has changed for the caller.

/// News of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Events {
    /// The handshake is complete: the application can write and read.
    pub is_established: bool,
    /// Bytes at the front of the send buffer that the peer has acknowledged: they can be dropped.
    pub acked: u32,
    /// Bytes that are now readable behind those that were.
    pub readable: u32,
    /// The peer has sent its FIN, and all bytes before it are readable.
    pub is_finished: bool,
    /// The peer has announced urgent data: [`crate::Connection::urgent_ahead`] tells where it ends.
    pub is_urgent: bool,
    /// The peer has not answered so often that another path should be tried (RFC 9293 §3.8.3 R1).
    /// Told once until the peer answers.
    pub is_doubtful: bool,
    /// The connection has ended. Nothing follows.
    pub closed: Option<CloseReason>,
}

impl Events {
    /// Nothing has changed.
    pub(crate) const NONE: Self = Self {
        is_established: false,
        acked: 0,
        readable: 0,
        is_finished: false,
        is_urgent: false,
        is_doubtful: false,
        closed: None,
    };

    /// The handshake is complete.
    pub(crate) const ESTABLISHED: Self = Self {
        is_established: true,
        ..Self::NONE
    };

    /// The connection has ended.
    pub(crate) const fn closed(reason: CloseReason) -> Self {
        Self {
            closed: Some(reason),
            ..Self::NONE
        }
    }
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides have closed, and TIME-WAIT is over.
    Finished,
    /// The peer answered the SYN with a reset: ECONNREFUSED.
    Refused,
    /// The peer has reset the connection: ECONNRESET, or EPIPE after its FIN.
    Reset,
    /// The peer did not answer: ETIMEDOUT.
    TimedOut,
    /// The application has reset the connection.
    Aborted,
    /// The network cannot reach the peer, and the handshake was not complete: EHOSTUNREACH.
    Unreachable,
}
