//! The TCP settings of each segment size: the MTU of the interface and the version of IP decide.

use alloc::vec;
use alloc::vec::Vec;

use saiga_tcp::Config;

use crate::network::Interface;

/// Most segment sizes. Further ones use the smallest.
const MOST: usize = 128;
/// Bytes of the headers without options.
const HEADERS_V4: u16 = 40;
const HEADERS_V6: u16 = 60;
/// Every path of IPv6 takes 1,280 bytes (RFC 8200 §5), whatever an ICMP message says: so much
/// payload, with timestamps.
const LEAST_PATH_V6: u16 = 1208;

/// Settings by segment size. A connection keeps its own when the MTU changes, so none is removed.
#[derive(Debug)]
pub(crate) struct SizedSettings {
    sizes: Vec<Config>,
}

impl SizedSettings {
    pub(crate) fn new(config: &Config) -> Self {
        let least = Config {
            mss: config.mss.min(536),
            ..config.clone()
        };
        Self { sizes: vec![least] }
    }

    /// The index of the settings for connections of an interface.
    pub(crate) fn of(&mut self, interface: &Interface, is_v6: bool) -> u8 {
        let (headers, least_path_mss) = if is_v6 {
            (HEADERS_V6, LEAST_PATH_V6)
        } else {
            (HEADERS_V4, self.sizes[0].least_path_mss)
        };
        let mss = interface.mtu - headers;
        let is_same =
            |config: &Config| (config.mss, config.least_path_mss) == (mss, least_path_mss);
        let known = self.sizes.iter().position(is_same);
        let index = match known {
            Some(index) => index,
            None if self.sizes.len() < MOST => {
                let config = Config {
                    mss,
                    least_path_mss,
                    ..self.sizes[0].clone()
                };
                self.sizes.push(config);
                self.sizes.len() - 1
            }
            None => 0,
        };
        u8::try_from(index).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn get(&self, index: u8) -> &Config {
        self.sizes.get(usize::from(index)).unwrap_or(&self.sizes[0])
    }
}
