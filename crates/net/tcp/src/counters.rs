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

impl Counters {
    /// All counts with their names, as nstat(8) has them without the prefix.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 31] {
        let Self {
            in_segs,
            out_segs,
            retrans_segs,
            active_opens,
            passive_opens,
            attempt_fails,
            estab_resets,
            sync_cookies_sent,
            sync_cookies_recv,
            sync_cookies_failed,
            out_of_window_icmps,
            timeouts,
            spurious_rtos,
            loss_probes,
            loss_probe_recovery,
            sack_recovery,
            reno_recovery,
            sack_reneging,
            dsack_recv,
            dsack_undos,
            dsack_sent,
            paws_estab,
            challenge_acks,
            acks_skipped_challenge,
            keep_alives,
            abort_on_timeout,
            ofo_queue,
            out_of_window_bytes,
            ecn_reductions,
            mtu_probe_fails,
            mtu_probe_successes,
        } = *self;
        [
            ("InSegs", in_segs),
            ("OutSegs", out_segs),
            ("RetransSegs", retrans_segs),
            ("ActiveOpens", active_opens),
            ("PassiveOpens", passive_opens),
            ("AttemptFails", attempt_fails),
            ("EstabResets", estab_resets),
            ("TCPSyncookiesSent", sync_cookies_sent),
            ("TCPSyncookiesRecv", sync_cookies_recv),
            ("TCPSyncookiesFailed", sync_cookies_failed),
            ("OutOfWindowIcmps", out_of_window_icmps),
            ("TCPTimeouts", timeouts),
            ("TCPSpuriousRTOs", spurious_rtos),
            ("TCPLossProbes", loss_probes),
            ("TCPLossProbeRecovery", loss_probe_recovery),
            ("TCPSackRecovery", sack_recovery),
            ("TCPRenoRecovery", reno_recovery),
            ("TCPSACKReneging", sack_reneging),
            ("TCPDSACKRecv", dsack_recv),
            ("TCPDSACKUndo", dsack_undos),
            ("TCPDSACKOldSent", dsack_sent),
            ("PAWSEstab", paws_estab),
            ("TCPChallengeACK", challenge_acks),
            ("TCPACKSkippedChallenge", acks_skipped_challenge),
            ("TCPKeepAlive", keep_alives),
            ("TCPAbortOnTimeout", abort_on_timeout),
            ("TCPOFOQueue", ofo_queue),
            ("TCPRcvQDrop", out_of_window_bytes),
            ("TCPECNReductions", ecn_reductions),
            ("TCPMTUPFail", mtu_probe_fails),
            ("TCPMTUPSuccess", mtu_probe_successes),
        ]
    }
}
