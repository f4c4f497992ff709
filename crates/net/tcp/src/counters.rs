//! Counts of a worker, under their names in SNMP and in /proc/net/netstat.

/// Monotonic counts of all connections of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// `tcpInSegs`: segments that connections took.
    pub in_segs: u64,
    /// `tcpOutSegs`: segments that connections gave, without retransmissions.
    pub out_segs: u64,
    /// `tcpRetransSegs`.
    pub retrans_segs: u64,
    /// `tcpActiveOpens`.
    pub active_opens: u64,
    /// `tcpPassiveOpens`.
    pub passive_opens: u64,
    /// `tcpAttemptFails`: opens that failed.
    pub attempt_fails: u64,
    /// `tcpEstabResets`: established connections that were reset.
    pub estab_resets: u64,
    /// `TCPSyncookiesSent`: SYNs that were answered without state.
    pub sync_cookies_sent: u64,
    /// `TCPSyncookiesRecv`: connections that began with a cookie.
    pub sync_cookies_recv: u64,
    /// `TCPSyncookiesFailed`: acknowledgements with a cookie that was not valid.
    pub sync_cookies_failed: u64,
    /// `OutOfWindowIcmps`: ICMP errors about segments that are not in flight.
    pub out_of_window_icmps: u64,
    /// `TCPTimeouts`: retransmission time-outs.
    pub timeouts: u64,
    /// `TCPSpuriousRTOs`: time-outs that F-RTO found to be unnecessary.
    pub spurious_rtos: u64,
    /// `TCPLossProbes`.
    pub loss_probes: u64,
    /// `TCPLossProbeRecovery`: losses that a probe repaired.
    pub loss_probe_recovery: u64,
    /// `TCPSackRecovery`: recoveries that selective acknowledgements began.
    pub sack_recovery: u64,
    /// `TCPRenoRecovery`: recoveries that duplicate acknowledgements began.
    pub reno_recovery: u64,
    /// `TCPSACKReneging`.
    pub sack_reneging: u64,
    /// `TCPDSACKRecv`: duplicate selective acknowledgements that came.
    pub dsack_recv: u64,
    /// `TCPDSACKUndo`: recoveries that such reports showed to be needless.
    pub dsack_undos: u64,
    /// `TCPDSACKOldSent`: duplicate selective acknowledgements that were sent.
    pub dsack_sent: u64,
    /// `PAWSEstab`: segments with a timestamp that is too old.
    pub paws_estab: u64,
    /// `TCPChallengeACK`.
    pub challenge_acks: u64,
    /// `TCPACKSkippedChallenge`: challenge acknowledgements that the limit held back.
    pub acks_skipped_challenge: u64,
    /// `TCPKeepAlive`: probes of idle connections.
    pub keep_alives: u64,
    /// `TCPAbortOnTimeout`.
    pub abort_on_timeout: u64,
    /// `TCPOFOQueue`: segments above a hole.
    pub ofo_queue: u64,
    /// `TCPRcvQDrop`: bytes outside of the window.
    pub out_of_window_bytes: u64,
    /// `TCPECNReductions`: windows that ECN-Echo reduced.
    pub ecn_reductions: u64,
    /// `TCPMTUPFail`: path MTU probes that were lost.
    pub mtu_probe_fails: u64,
    /// `TCPMTUPSuccess`.
    pub mtu_probe_successes: u64,
}
