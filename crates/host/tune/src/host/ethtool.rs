//! Settings of network devices by ioctl SIOCETHTOOL.
//!
//! Layouts and numbers: the kernel's `include/uapi/linux/ethtool.h`. Each structure is an array of
//! 32-bit numbers in the byte order of the host; the first is the command.
#![expect(unsafe_code, reason = "ioctl")]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use crate::target::NicSetting;

mod features;

/// Settings of network devices.
pub trait Ethtool: fmt::Debug {
    /// The text of a setting, as [`NicSetting`] says; `None` if the device does not have it.
    ///
    /// # Errors
    /// The device has the setting and cannot be asked.
    fn read(&self, nic: &str, setting: &NicSetting) -> io::Result<Option<String>>;

    /// Sets a value: the first word of what [`read`](Self::read) returns.
    ///
    /// # Errors
    /// The driver refuses, or the value is not one for this setting.
    fn write(&mut self, nic: &str, setting: &NicSetting, value: &str) -> io::Result<()>;
}

/// The devices of this network namespace.
#[derive(Debug)]
pub struct Ioctl;

/// A structure of fixed size: the commands that read and write it, and its length with the command.
struct Layout {
    read: u32,
    write: u32,
    words: usize,
}

const COALESCE: Layout = Layout {
    read: 0x0e,
    write: 0x0f,
    words: 23,
};
const RINGS: Layout = Layout {
    read: 0x10,
    write: 0x11,
    words: 9,
};
const CHANNELS: Layout = Layout {
    read: 0x3c,
    write: 0x3d,
    words: 9,
};
const GET_RSS: u32 = 0x38;
const SET_RSS: u32 = 0x39;
/// Entries of an indirection table that are read at most.
const RSS_LIMIT: u32 = 1 << 14;

/// The layout of a setting, the places of its value and its maximum, and whether it is a switch.
fn place(setting: &NicSetting) -> Option<(&'static Layout, usize, Option<usize>, bool)> {
    Some(match setting {
        NicSetting::RxMicroseconds => (&COALESCE, 1, None, false),
        NicSetting::TxMicroseconds => (&COALESCE, 5, None, false),
        NicSetting::AdaptiveRx => (&COALESCE, 10, None, true),
        NicSetting::AdaptiveTx => (&COALESCE, 11, None, true),
        NicSetting::RxRing => (&RINGS, 5, Some(1), false),
        NicSetting::TxRing => (&RINGS, 8, Some(4), false),
        NicSetting::CombinedQueues => (&CHANNELS, 8, Some(4), false),
        NicSetting::RxQueues => (&CHANNELS, 5, Some(1), false),
        NicSetting::TxQueues => (&CHANNELS, 6, Some(2), false),
        NicSetting::Feature(_) | NicSetting::Rss => return None,
    })
}

impl Ethtool for Ioctl {
    fn read(&self, nic: &str, setting: &NicSetting) -> io::Result<Option<String>> {
        let read = match (setting, place(setting)) {
            (NicSetting::Feature(name), _) => features::read(nic, name),
            (_, None) => rss(nic),
            (_, Some((layout, at, limit, is_switch))) => {
                get(nic, layout).map(|words| shown(&words, at, limit, is_switch))
            }
        };
        match read {
            Err(error) if is_absent(&error) => Ok(None),
            read => read,
        }
    }

    fn write(&mut self, nic: &str, setting: &NicSetting, value: &str) -> io::Result<()> {
        let word = value.split_whitespace().next().unwrap_or("");
        match (setting, place(setting)) {
            (NicSetting::Feature(name), _) => features::write(nic, name, word == "on"),
            (_, None) => set_rss(nic, value),
            (_, Some((layout, at, _, is_switch))) => {
                let number = match word {
                    "on" if is_switch => 1,
                    "off" if is_switch => 0,
                    _ => word.parse::<u32>().map_err(|_| invalid(value))?,
                };
                let mut words = get(nic, layout)?;
                *words.get_mut(at).ok_or_else(|| invalid(value))? = number;
                if let Some(command) = words.first_mut() {
                    *command = layout.write;
                }
                call(nic, &mut words)
            }
        }
    }
}

fn shown(words: &[u32], at: usize, limit: Option<usize>, is_switch: bool) -> Option<String> {
    let value = *words.get(at)?;
    let limit = limit.and_then(|at| words.get(at));
    // A device without such queues or rings has a maximum of 0.
    match (is_switch, limit) {
        (true, _) => Some(if value == 0 { "off" } else { "on" }.to_owned()),
        (false, Some(0)) => None,
        (false, Some(limit)) => Some(format!("{value} max {limit}")),
        (false, None) => Some(value.to_string()),
    }
}

fn get(nic: &str, layout: &Layout) -> io::Result<Vec<u32>> {
    let mut words = vec![0; layout.words];
    if let Some(command) = words.first_mut() {
        *command = layout.read;
    }
    call(nic, &mut words)?;
    Ok(words)
}

/// The indirection table. Without room for entries, the kernel returns their number.
fn rss(nic: &str) -> io::Result<Option<String>> {
    let mut head = [GET_RSS, 0];
    call(nic, &mut head)?;
    let [_, entries] = head;
    if entries == 0 || entries > RSS_LIMIT {
        return Ok(None);
    }
    let mut words = vec![GET_RSS, entries];
    words.resize(2 + entries as usize, 0);
    call(nic, &mut words)?;
    let queues = words.iter().skip(2).map(u32::to_string);
    Ok(Some(queues.collect::<Vec<_>>().join(" ")))
}

/// Writes an indirection table. One that names all queues of the device in turn is the default:
/// writing size 0 restores it, so that the driver may change the queue count later.
fn set_rss(nic: &str, value: &str) -> io::Result<()> {
    let queues: Result<Vec<u32>, _> = value.split_whitespace().map(str::parse).collect();
    let queues = queues.map_err(|_| invalid(value))?;
    let entries = u32::try_from(queues.len()).map_err(|_| invalid(value))?;
    let count = rx_queues(nic)?;
    let in_turn = |(at, queue): (u32, &u32)| at.checked_rem(count) == Some(*queue);
    let is_default = (0..).zip(&queues).all(in_turn);
    let mut words = vec![SET_RSS, if is_default { 0 } else { entries }];
    words.extend(if is_default { Vec::new() } else { queues });
    call(nic, &mut words)
}

/// The number of receive queues, combined ones included.
fn rx_queues(nic: &str) -> io::Result<u32> {
    let words = get(nic, &CHANNELS)?;
    let of = |at: usize| words.get(at).copied().unwrap_or(0);
    Ok(of(5).saturating_add(of(8)))
}

fn invalid(value: &str) -> io::Error {
    let text = format!("`{value}` is not a value of this setting");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// A device, or a driver, that does not have the setting.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL)
    )
}

/// `struct ifreq` as SIOCETHTOOL uses it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    /// The kernel copies the whole union, which is 24 bytes long.
    rest: [u64; 2],
}

const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());

fn call(nic: &str, words: &mut [u32]) -> io::Result<()> {
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays 0.
    let is_name = nic.len() < name.len() && !nic.is_empty() && !nic.contains('\0');
    if !is_name {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in name.iter_mut().zip(nic.bytes()) {
        *to = from;
    }
    let socket: OwnedFd = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = Request {
        name,
        data: words.as_mut_ptr(),
        rest: [0; 2],
    };
    let request: *mut Request = &raw mut request;
    // SAFETY: the request is valid, its name ends with 0, and `data` points to the structure of the
    // command, whose length the command or its second number gives.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_become_texts() {
        let channels = [0x3c, 0, 0, 0, 64, 0, 0, 0, 16];
        assert_eq!(shown(&channels, 8, Some(4), false).unwrap(), "16 max 64");
        assert_eq!(shown(&[0; 9], 8, Some(4), false), None);
        assert_eq!(shown(&[0, 1], 1, None, true).unwrap(), "on");
        assert_eq!(shown(&[0, 8], 1, None, false).unwrap(), "8");
    }

    #[test]
    fn the_loopback_device_answers() {
        let ioctl = Ioctl;
        assert_eq!(ioctl.read("lo", &NicSetting::CombinedQueues).unwrap(), None);
        let setting = NicSetting::Feature("tx-tcp-segmentation".to_owned());
        let text = ioctl.read("lo", &setting).unwrap().unwrap();
        assert!(text.starts_with("on") || text.starts_with("off"), "{text}");
        let unknown = NicSetting::Feature("none".to_owned());
        assert_eq!(ioctl.read("lo", &unknown).unwrap(), None);
        assert_eq!(ioctl.read("no-such-device-at-all", &unknown).unwrap(), None);
    }
}
