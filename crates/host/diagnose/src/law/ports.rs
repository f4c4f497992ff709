//! The most short connections per second that local ports allow.
//!
//! The end that closes first keeps the pair of addresses in TIME_WAIT (RFC 9293 §3.6.1). Linux
//! keeps it for 60 s (`TCP_TIMEWAIT_LEN`), or reuses it after a second if `net.ipv4.tcp_tw_reuse`
//! and TCP timestamps are on.

/// Connections per second: `hosts * ports * destinations / hold_s`.
///
/// `hosts` is the number of addresses that connect, `ports` the number of ephemeral ports of each,
/// `destinations` the number of distinct addresses with port that they connect to, and `hold_s` the
/// time for which a closed connection keeps its port.
#[must_use]
pub fn ceiling(hosts: f64, ports: f64, destinations: f64, hold_s: f64) -> f64 {
    hosts * ports * destinations / hold_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_hosts_with_fifty_thousand_ports_make_ten_thousand_connections_per_second() {
        assert!((ceiling(12.0, 50_000.0, 1.0, 60.0) - 10_000.0).abs() < 1e-9);
    }

    #[test]
    fn linux_makes_470_connections_per_second_to_one_destination_by_default() {
        assert!((ceiling(1.0, 28_232.0, 1.0, 60.0) - 470.53).abs() < 0.01);
    }
}
