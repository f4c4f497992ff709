//! Settings that all connections of a listener or of a host share.

use core::num::{NonZeroU8, NonZeroU32};

use crate::congestion::Algorithm;
use crate::rtt::Bounds;
use crate::time::Micros;

/// Settings of the engine. The defaults are Linux's where Linux has the same setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Largest segment that this host can receive: the MTU without IP and TCP headers (RFC 9293
    /// §3.7.1). Bytes, at least 64.
    pub mss: u16,
    /// Congestion control.
    pub congestion: Algorithm,
    /// Whether to offer window scaling (RFC 7323 §2), timestamps (RFC 7323 §3), selective
    /// acknowledgements (RFC 2018) and ECN (RFC 3168).
    pub has_window_scale: bool,
    /// See `has_window_scale`.
    pub has_timestamps: bool,
    /// See `has_window_scale`.
    pub has_sack: bool,
    /// See `has_window_scale`.
    pub has_ecn: bool,
    /// The retransmission time-out.
    pub rto: Bounds,
    /// Retransmissions of a SYN (`tcp_syn_retries`), and of a SYN with its acknowledgement
    /// (`tcp_synack_retries`).
    pub syn_retries: u8,
    /// See `syn_retries`.
    pub syn_ack_retries: u8,
    /// Retransmissions of the same data, or of a SYN, before the caller is told to look for another
    /// path (`tcp_retries1`, RFC 9293 §3.8.3 R1).
    pub path_retries: u8,
    /// Retransmissions of the same data before the connection ends (`tcp_retries2`, RFC 9293 §3.8.3
    /// R2).
    pub data_retries: u8,
    /// The same once the application has gone (`tcp_orphan_retries`): nobody waits, and memory is
    /// held. At most `data_retries` count.
    pub orphan_retries: u8,
    /// Longest delay of an acknowledgement; RFC 9293 §3.8.6.3 allows less than 500 ms.
    pub ack_delay: Micros,
    /// Length of TIME-WAIT. RFC 9293 §3.4.2 asks for four minutes; Linux uses one.
    pub time_wait: Micros,
    /// How long FIN-WAIT-2 waits for the peer's FIN once the application has closed
    /// (`tcp_fin_timeout`).
    pub fin_wait: Micros,
    /// Challenge acknowledgements of a connection in a second (RFC 5961 §7).
    pub challenges_per_second: u8,
    /// Smallest segment size that a peer may ask for; less is raised to it (`tcp_min_snd_mss`).
    pub least_mss: u16,
    /// Smallest payload of a full segment that path MTU discovery goes down to: 512 for an MTU of
    /// 552 with IPv4 (`min_pmtu`), 1220 for the least MTU of IPv6.
    pub least_path_mss: u16,
    /// Whether several time-outs of large segments lead to smaller ones (RFC 4821, RFC 8899;
    /// `tcp_mtu_probing` 1). Linux's default is off.
    pub has_mtu_probing: bool,
    /// The least round-trip time of paths over which a window leaves evenly instead of at once, as
    /// with the queue `fq` of Linux; [`Micros::MAX`] for none. On long paths, bursts meet full
    /// queues; on short ones, the caller's timers are too coarse. The caller must ask for segments
    /// at [`crate::Connection::next_timeout`], at most a millisecond late.
    pub paced_from: Micros,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            congestion: Algorithm::Cubic,
            has_window_scale: true,
            has_timestamps: true,
            has_sack: true,
            has_ecn: false,
            rto: Bounds::default(),
            syn_retries: 6,
            syn_ack_retries: 5,
            path_retries: 3,
            data_retries: 15,
            orphan_retries: 8,
            ack_delay: Micros::from_millis(40),
            time_wait: Micros::from_secs(60),
            fin_wait: Micros::from_secs(60),
            challenges_per_second: 2,
            least_mss: 48,
            least_path_mss: 512,
            has_mtu_probing: true,
            paced_from: Micros::from_millis(20),
        }
    }
}

/// Probes of an idle connection (RFC 9293 §3.8.4, `man 7 tcp`: TCP_KEEPIDLE and so on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time without segments before the first probe.
    pub idle_ms: u32,
    /// Time between two probes.
    pub interval_ms: NonZeroU32,
    /// Probes without an answer before the connection ends.
    pub count: NonZeroU8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        const INTERVAL_MS: NonZeroU32 = NonZeroU32::new(75_000).expect("not zero");
        const COUNT: NonZeroU8 = NonZeroU8::new(9).expect("not zero");
        Self {
            idle_ms: 7_200_000,
            interval_ms: INTERVAL_MS,
            count: COUNT,
        }
    }
}
