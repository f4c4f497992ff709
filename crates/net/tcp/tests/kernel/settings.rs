//! The settings of a script as sysctls of its namespace, socket options and the device's MTU.

use std::collections::BTreeMap;
use std::io;

use saiga_wire::SeqNum;

use crate::device::sysctl;
use crate::run::Script;

/// The kernel as the scripts expect it: options as the engine's scripts begin with them, nothing
/// remembered from other connections, time-outs that double from the first on, a TIME-WAIT that
/// ignores resets, and a search for the path's MTU after many time-outs.
pub(crate) const DEFAULTS: [(&str, &str); 10] = [
    ("tcp_timestamps", "0"),
    ("tcp_window_scaling", "0"),
    ("tcp_ecn", "0"),
    ("tcp_sack", "1"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_syn_linear_timeouts", "0"),
    ("tcp_syn_retries", "6"),
    ("tcp_slow_start_after_idle", "1"),
    ("tcp_rfc1337", "1"),
    ("tcp_mtu_probing", "1"),
];

/// The options that this side offers.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(crate) struct Offers {
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    pub(crate) scale: bool,
    pub(crate) ecn: bool,
}

/// See [`DEFAULTS`].
impl Default for Offers {
    fn default() -> Self {
        Self {
            timestamps: false,
            sack: true,
            scale: false,
            ecn: false,
        }
    }
}

impl Script {
    pub(crate) fn configure(&mut self, pairs: &BTreeMap<String, String>) -> io::Result<()> {
        for (name, value) in pairs {
            let is_on = value == "on";
            let number = value.parse::<u32>().ok();
            self.configure_kernel(name, is_on, number.unwrap_or_default())?;
            self.configure_socket(name, is_on, number);
        }
        self.socket.set(&self.settings)
    }

    fn configure_kernel(&mut self, name: &str, is_on: bool, number: u32) -> io::Result<()> {
        let bit = u8::from(is_on);
        match name {
            "timestamps" => {
                self.offers.timestamps = is_on;
                sysctl("tcp_timestamps", bit)
            }
            "sack" => {
                self.offers.sack = is_on;
                sysctl("tcp_sack", bit)
            }
            "ws" => {
                self.offers.scale = is_on;
                sysctl("tcp_window_scaling", bit)
            }
            "ecn" => {
                self.offers.ecn = is_on;
                self.numbers.is_ecn = is_on;
                sysctl("tcp_ecn", bit)
            }
            "syn_retries" => sysctl("tcp_syn_retries", number),
            "syn_ack_retries" => sysctl("tcp_synack_retries", number),
            "data_retries" => {
                // The second is for sockets that no process holds.
                sysctl("tcp_retries2", number)?;
                sysctl("tcp_orphan_retries", number)
            }
            "quickack" => self.device.set_quickack(),
            "mtu_probing" => sysctl("tcp_mtu_probing", bit),
            // 40 bytes of headers.
            "mss" => self.device.set_mtu(number + 40),
            "clock" => {
                self.numbers.clock = number;
                Ok(())
            }
            "irs" => {
                self.numbers.irs = SeqNum(number);
                Ok(())
            }
            // Settings of the socket, and `iss`: the kernel chooses its own.
            _ => Ok(()),
        }
    }

    fn configure_socket(&mut self, name: &str, is_on: bool, number: Option<u32>) {
        let settings = &mut self.settings;
        match name {
            "buffer" => settings.buffer = number.map(u32::cast_signed),
            "newreno" => settings.is_newreno = is_on,
            "nodelay" => settings.is_nodelay = is_on,
            "user_timeout" => settings.user_timeout_ms = number,
            "keepalive" => {
                let seconds = number.map(|ms| ms.div_ceil(1000).cast_signed());
                settings.keepalive = seconds.map(|idle| [idle, 1, 3]);
            }
            "keepalive_default" => settings.keepalive = Some([7200, 75, 9]),
            _ => {}
        }
    }
}
