//! Addresses of PCI devices.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The address of a PCI device: domain, bus, device, function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    /// 5 bits.
    device: u8,
    /// 3 bits.
    function: u8,
}

/// The text is not the address of a PCI device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a PCI address such as \"0000:04:00.0\"; lspci -D lists them")]
pub struct NotPciAddress;

impl FromStr for PciAddress {
    type Err = NotPciAddress;

    fn from_str(text: &str) -> Result<Self, NotPciAddress> {
        parse(text).ok_or(NotPciAddress)
    }
}

impl TryFrom<String> for PciAddress {
    type Error = NotPciAddress;

    fn try_from(text: String) -> Result<Self, NotPciAddress> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

/// Parses `[domain:]bus:device.function`, all hexadecimal.
fn parse(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.split_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let (domain, bus, device) = match parts.as_slice() {
        [domain, bus, device] => (*domain, *bus, *device),
        [bus, device] => ("0", *bus, *device),
        _ => return None,
    };
    let address = PciAddress {
        domain: hexadecimal(domain, 8)?,
        bus: u8::try_from(hexadecimal(bus, 2)?).ok()?,
        device: u8::try_from(hexadecimal(device, 2)?).ok()?,
        function: u8::try_from(hexadecimal(function, 1)?).ok()?,
    };
    (address.device < 32 && address.function < 8).then_some(address)
}

/// Parses a number of at most `digits` digits. `from_str_radix` alone would accept a sign.
fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_number)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_shown() {
        for (text, shown) in [
            ("0000:04:00.0", "0000:04:00.0"),
            ("04:00.1", "0000:04:00.1"),
            ("10000:E1:1f.7", "10000:e1:1f.7"),
        ] {
            let address: PciAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
        }
        for bad in [
            "",
            "04",
            "04:00",
            "04:20.0",
            "04:00.8",
            "0:0:0:0.0",
            "+4:00.0",
            ":00.0",
            "../../0000:04:00.0",
        ] {
            assert!(bad.parse::<PciAddress>().is_err(), "{bad:?}");
        }
    }
}
