//! The counts of TCP and their metrics.

/// Name in SNMP, name of the metric, and help of each count.
pub(super) const TCP: [(&str, &str, &str); 31] = [
    (
        "InSegs",
        "tcp_received_segments",
        "Segments that connections took",
    ),
    (
        "OutSegs",
        "tcp_sent_segments",
        "Sent segments, without retransmissions",
    ),
    (
        "RetransSegs",
        "tcp_retransmitted_segments",
        "Segments that were sent again",
    ),
    (
        "ActiveOpens",
        "tcp_active_opens",
        "Connections that the gateway opened",
    ),
    (
        "PassiveOpens",
        "tcp_passive_opens",
        "Connections that clients opened",
    ),
    ("AttemptFails", "tcp_failed_attempts", "Opens that failed"),
    (
        "EstabResets",
        "tcp_established_resets",
        "Established connections that were reset",
    ),
    (
        "TCPSyncookiesSent",
        "tcp_syn_cookies_sent",
        "SYNs that were answered without state",
    ),
    (
        "TCPSyncookiesRecv",
        "tcp_syn_cookies_received",
        "Connections that began with a cookie",
    ),
    (
        "TCPSyncookiesFailed",
        "tcp_syn_cookies_failed",
        "Cookies that were not valid",
    ),
    (
        "OutOfWindowIcmps",
        "tcp_out_of_window_icmps",
        "ICMP errors about segments not in flight",
    ),
    ("TCPTimeouts", "tcp_timeouts", "Retransmission time-outs"),
    (
        "TCPSpuriousRTOs",
        "tcp_spurious_timeouts",
        "Time-outs that were unnecessary",
    ),
    ("TCPLossProbes", "tcp_loss_probes", "Tail loss probes"),
    (
        "TCPLossProbeRecovery",
        "tcp_loss_probe_recoveries",
        "Losses that a probe repaired",
    ),
    (
        "TCPSackRecovery",
        "tcp_sack_recoveries",
        "Recoveries by selective acknowledgements",
    ),
    (
        "TCPRenoRecovery",
        "tcp_reno_recoveries",
        "Recoveries by duplicate acknowledgements",
    ),
    (
        "TCPSACKReneging",
        "tcp_sack_reneging",
        "Peers that took a selective acknowledgement back",
    ),
    (
        "TCPDSACKRecv",
        "tcp_dsacks_received",
        "Duplicate selective acknowledgements received",
    ),
    (
        "TCPDSACKUndo",
        "tcp_dsack_undos",
        "Recoveries that were needless",
    ),
    (
        "TCPDSACKOldSent",
        "tcp_dsacks_sent",
        "Duplicate selective acknowledgements sent",
    ),
    (
        "PAWSEstab",
        "tcp_paws_drops",
        "Segments with a timestamp that is too old",
    ),
    (
        "TCPChallengeACK",
        "tcp_challenge_acks",
        "Challenge acknowledgements",
    ),
    (
        "TCPACKSkippedChallenge",
        "tcp_challenge_acks_skipped",
        "Challenge acknowledgements that the limit held back",
    ),
    (
        "TCPKeepAlive",
        "tcp_keep_alive_probes",
        "Probes of idle connections",
    ),
    (
        "TCPAbortOnTimeout",
        "tcp_timeout_aborts",
        "Connections whose peer did not answer",
    ),
    (
        "TCPOFOQueue",
        "tcp_out_of_order_segments",
        "Segments above a hole",
    ),
    (
        "TCPRcvQDrop",
        "tcp_out_of_window_bytes",
        "Received bytes outside of the window",
    ),
    (
        "TCPECNReductions",
        "tcp_ecn_reductions",
        "Windows that ECN-Echo reduced",
    ),
    (
        "TCPMTUPFail",
        "tcp_mtu_probes_failed",
        "Path MTU probes that were lost",
    ),
    (
        "TCPMTUPSuccess",
        "tcp_mtu_probes_succeeded",
        "Path MTU probes that arrived",
    ),
];
