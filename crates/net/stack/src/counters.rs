//! Counts of a stack: what came, what left, and why packets were dropped.

use saiga_wire::Malformed;

/// Monotonic counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Frames that came.
    pub in_frames: u64,
    /// Frames that left.
    pub out_frames: u64,
    /// Frames, and packets put together from fragments, that were handed back.
    pub handed_back: u64,
    /// Such packets that were dropped, because too many of them waited for the caller.
    pub hand_backs_dropped: u64,
    /// Malformed packets, by [`Malformed`] as a number.
    pub malformed: [u64; Malformed::COUNT],
    /// Packets that could not leave, because no route leads to the destination.
    pub no_route: u64,
    /// Answers that exceed the MTU, or that found too many others waiting.
    pub answers_dropped: u64,
    /// Answers that a rate limit suppressed.
    pub answers_limited: u64,
    /// Frames that waited for a neighbour in vain.
    pub neighbour_drops: u64,
    /// Packets whose fragments overlapped, were missing for too long, or gave way to others.
    pub fragments_overlapped: u64,
    /// See `fragments_overlapped`.
    pub fragments_expired: u64,
    /// See `fragments_overlapped`.
    pub fragments_evicted: u64,
    /// SYNs that were dropped, because the listener has too many connections in handshakes.
    pub syns_dropped: u64,
    /// SYNs that were dropped, because there are too many connections.
    pub table_full: u64,
    /// Connections in TIME-WAIT that gave way to others (`TCPTimeWaitOverflow`).
    pub time_wait_overflow: u64,
    /// Segments without a connection that were answered by a reset (`tcpOutRsts`, in part).
    pub out_rsts: u64,
    /// Counts of TCP.
    pub tcp: saiga_tcp::Counters,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            in_frames: 0,
            out_frames: 0,
            handed_back: 0,
            hand_backs_dropped: 0,
            malformed: [0; Malformed::COUNT],
            no_route: 0,
            answers_dropped: 0,
            answers_limited: 0,
            neighbour_drops: 0,
            fragments_overlapped: 0,
            fragments_expired: 0,
            fragments_evicted: 0,
            syns_dropped: 0,
            table_full: 0,
            time_wait_overflow: 0,
            out_rsts: 0,
            tcp: saiga_tcp::Counters::default(),
        }
    }
}

impl Counters {
    /// All counts with their names, except those of malformed packets and of TCP.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 15] {
        let Self {
            in_frames,
            out_frames,
            handed_back,
            hand_backs_dropped,
            malformed: _,
            no_route,
            answers_dropped,
            answers_limited,
            neighbour_drops,
            fragments_overlapped,
            fragments_expired,
            fragments_evicted,
            syns_dropped,
            table_full,
            time_wait_overflow,
            out_rsts,
            tcp: _,
        } = *self;
        [
            ("in_frames", in_frames),
            ("out_frames", out_frames),
            ("handed_back", handed_back),
            ("hand_backs_dropped", hand_backs_dropped),
            ("no_route", no_route),
            ("answers_dropped", answers_dropped),
            ("answers_limited", answers_limited),
            ("neighbour_drops", neighbour_drops),
            ("fragments_overlapped", fragments_overlapped),
            ("fragments_expired", fragments_expired),
            ("fragments_evicted", fragments_evicted),
            ("syns_dropped", syns_dropped),
            ("table_full", table_full),
            ("time_wait_overflow", time_wait_overflow),
            ("out_rsts", out_rsts),
        ]
    }
}
