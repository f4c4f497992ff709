//! Single values: names of interfaces, MAC addresses, sizes, lists of numbers.
//!
//! Each parser returns what to write instead. Deliberately absent: addresses of IP (`address.rs`).

use std::fmt;
use std::str::FromStr;

use saiga_process::numbers;
pub use saiga_provision::PciAddress;
use saiga_wire::ethernet::Mac;

/// The name of a network interface: 1 to 15 bytes (`net/core/dev.c`, `dev_valid_name`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterfaceName(String);

impl InterfaceName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_bad = |byte: u8| !byte.is_ascii_graphic() || b"/:%\"\\".contains(&byte);
        if text.is_empty() || text.len() > 15 || text.bytes().any(is_bad) {
            return Err(
                "write the name of an interface: at most 15 characters, without spaces, \
                        \"/\", \":\" and \"%\""
                    .to_owned(),
            );
        }
        if text == "." || text == ".." {
            return Err("write the name of an interface".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses a number of at most `digits` digits. `from_str_radix` alone would accept a sign.
fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_number)
}

/// Parses the MAC address of a network card.
pub(crate) fn mac(text: &str) -> Result<Mac, String> {
    let parts: Option<Vec<u8>> = text
        .split(':')
        .map(|part| u8::try_from(hexadecimal(part, 2)?).ok())
        .collect();
    let bytes = parts.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    bytes
        .map(Mac)
        .filter(|mac| !mac.is_group() && mac.0 != [0; 6])
        .ok_or_else(|| "write the MAC address of a card such as \"aa:bb:cc:dd:ee:f0\"".to_owned())
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Units, the largest first.
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (name, factor) = UNITS.iter().find(|(name, _)| text.ends_with(name))?;
            let digits = text.strip_suffix(name)?.trim_end();
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number: u64 = digits.parse().ok().filter(|_| is_number)?;
            number.checked_mul(*factor).map(Self)
        };
        parsed().ok_or_else(|| "write a size with its unit such as \"256MiB\"".to_owned())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS
            .iter()
            .find(|(_, factor)| self.0.is_multiple_of(*factor));
        let (name, factor) = exact.filter(|_| self.0 != 0).unwrap_or(&("MiB", 1 << 20));
        write!(f, "{}{name}", self.0 / factor)
    }
}

/// Checks a string: messages and files must stay readable.
pub(crate) fn plain(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("write a string that is not empty".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("remove the control characters".to_owned());
    }
    Ok(text)
}

/// Parses a list of CPUs, nodes or queues such as `0-3,8`; returns them in ascending order.
pub(crate) fn list(text: &str, most: usize) -> Result<Vec<usize>, String> {
    let all = numbers::list(text, most)
        .ok_or_else(|| format!("write a list of numbers such as \"0-3,8\", each at most {most}"))?;
    let parts = text.split(',').filter_map(|part| numbers::list(part, most));
    let mut seen: Vec<usize> = parts.flatten().collect();
    seen.sort_unstable();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} is in the list twice", pair[0])),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces() {
        for text in ["lo", "enp4s0", "enp4s0.100", "br-0123456789ab"] {
            assert_eq!(text.parse::<InterfaceName>().unwrap().as_str(), text);
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a:b",
            "veth%d",
            "a\"",
            "sixteen-letters-",
        ] {
            assert!(bad.parse::<InterfaceName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn mac_addresses() {
        let expected = Ok(Mac([0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x0f]));
        assert_eq!(mac("aa:bb:cc:dd:ee:f"), expected);
        assert_eq!(mac("AA:BB:CC:DD:EE:0F"), expected);
        for bad in [
            "",
            "aa:bb:cc:dd:ee",
            "ab:bb:cc:dd:ee:0f",
            "0:0:0:0:0:0",
            "aa-bb-cc-dd-ee-0f",
        ] {
            assert!(mac(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes, shown) in [
            ("2400MiB", 2_516_582_400, "2400MiB"),
            ("2048 MiB", 2_147_483_648, "2GiB"),
            ("1536KiB", 1_572_864, "1536KiB"),
            ("7B", 7, "7B"),
            ("0GiB", 0, "0MiB"),
        ] {
            let size: Bytes = text.parse().unwrap();
            assert_eq!(size, Bytes(bytes), "{text}");
            assert_eq!(size.to_string(), shown, "{text}");
        }
        for bad in [
            "",
            "MiB",
            "5",
            "5MB",
            "-5MiB",
            "+5MiB",
            "99999999999GiB",
            "1.5GiB",
        ] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lists_of_numbers() {
        assert_eq!(list("18,38, 58-59", 4095), Ok(vec![18, 38, 58, 59]));
        for (bad, expected) in [
            ("2,2", "2 is in the list twice"),
            ("0-3,2-5", "2 is in the list twice"),
            ("3-1", "write a list"),
            ("0-4096", "each at most 4095"),
            ("", "write a list"),
        ] {
            let problem = list(bad, 4095).unwrap_err();
            assert!(problem.contains(expected), "{bad:?}: {problem}");
        }
    }
}
