//! Addresses and prefixes of IP as the file has them.
//!
//! Each parser returns what to write instead. An IPv4 address in the form of IPv6 is refused
//! everywhere: no packet carries it, so a rule with it would never match.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// A route to a network behind a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The network; prefix length 0 for the default route.
    pub destination: IpNet,
    /// The router.
    pub gateway: IpAddr,
}

impl fmt::Display for Route {
    /// As in the file: `default via 192.168.1.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            destination,
            gateway,
        } = self;
        if destination.prefix_len() == 0 {
            write!(f, "default via {gateway}")
        } else {
            write!(f, "{destination} via {gateway}")
        }
    }
}

/// Parses the address of a host that other hosts can reach.
pub(crate) fn host(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text
        .parse()
        .map_err(|_| "write an address such as \"192.168.1.10\" or \"2001:db8::10\"".to_owned())?;
    if is_mapped(address) {
        return Err(format!(
            "write {} as an IPv4 address",
            address.to_canonical()
        ));
    }
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        return Err("write the address of one host that other hosts can reach".to_owned());
    }
    Ok(address)
}

/// Parses an own address with the length of its network's prefix.
pub(crate) fn own(text: &str) -> Result<IpNet, String> {
    let Ok(network) = text.parse::<IpNet>() else {
        let example = match host(text)? {
            IpAddr::V4(address) => format!("{address}/24"),
            IpAddr::V6(address) => format!("{address}/64"),
        };
        return Err(format!(
            "add the length of the network's prefix: {example:?}"
        ));
    };
    let address = host(&network.addr().to_string())?;
    let is_shared = network.max_prefix_len() - network.prefix_len() > 1;
    if address.is_ipv4() && is_shared && [network.network(), network.broadcast()].contains(&address)
    {
        return Err("write the address of this host, not that of its network".to_owned());
    }
    Ok(network)
}

/// Parses the prefix of a network, or one address.
pub(crate) fn prefix(text: &str) -> Result<IpNet, String> {
    let network = text
        .parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "write a prefix such as \"10.0.0.0/8\", or an address".to_owned())?;
    if is_mapped(network.addr()) {
        return Err("write an IPv4 prefix in the form of IPv4".to_owned());
    }
    if network.trunc() != network {
        return Err(format!(
            "its address has bits behind the prefix; write \"{}\"",
            network.trunc()
        ));
    }
    Ok(network)
}

/// Parses a route in the form of `ip route add`.
pub(crate) fn route(text: &str) -> Result<Route, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [destination, "via", gateway] = words.as_slice() else {
        return Err("write \"default via ROUTER\" or \"PREFIX via ROUTER\"".to_owned());
    };
    let gateway = host(gateway)?;
    let destination = match (*destination, gateway) {
        ("default", gateway) => everything(gateway.is_ipv4()),
        (text, _) => prefix(text)?,
    };
    if destination.addr().is_ipv4() != gateway.is_ipv4() {
        return Err("write a router of the same version of IP as the destination".to_owned());
    }
    Ok(Route {
        destination,
        gateway,
    })
}

/// The prefix that contains all addresses of a version of IP.
pub(crate) fn everything(is_v4: bool) -> IpNet {
    if is_v4 {
        IpNet::V4(ipnet::Ipv4Net::default())
    } else {
        IpNet::V6(ipnet::Ipv6Net::default())
    }
}

fn is_mapped(address: IpAddr) -> bool {
    address.to_canonical() != address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_have_a_prefix_and_are_hosts() {
        for text in [
            "192.168.1.10/24",
            "10.0.0.0/31",
            "10.0.0.1/32",
            "2001:db8::/64",
        ] {
            assert_eq!(own(text).unwrap().to_string(), text);
        }
        for (text, expected) in [
            (
                "192.168.1.10",
                "add the length of the network's prefix: \"192.168.1.10/24\"",
            ),
            ("2001:db8::1", "\"2001:db8::1/64\""),
            ("192.168.1.0/24", "not that of its network"),
            ("192.168.1.255/24", "not that of its network"),
            ("127.0.0.1/8", "that other hosts can reach"),
            ("224.0.0.1/24", "that other hosts can reach"),
            ("::ffff:10.0.0.1/120", "write 10.0.0.1 as an IPv4 address"),
            ("10.0.0.1/33", "write an address"),
            ("server", "write an address"),
        ] {
            let problem = own(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn prefixes_have_no_further_bits() {
        for (text, shown) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(prefix(text).unwrap().to_string(), shown, "{text}");
        }
        for (text, expected) in [
            ("10.1.0.0/8", "write \"10.0.0.0/8\""),
            ("::ffff:10.0.0.0/104", "in the form of IPv4"),
            ("10.0.0.0/40", "write a prefix"),
            ("", "write a prefix"),
        ] {
            let problem = prefix(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn routes() {
        for text in [
            "default via 192.168.1.1",
            "default via fe80::1",
            "10.0.0.0/8 via 192.168.1.254",
        ] {
            assert_eq!(route(text).unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("192.168.1.1", "write \"default via ROUTER\""),
            ("default via here", "write an address"),
            ("10.0.0.0/8 via fe80::1", "same version of IP"),
            ("10.0.0.1/8 via 10.1.1.1", "bits behind the prefix"),
            (
                "default via 10.0.0.1 dev eth0",
                "write \"default via ROUTER\"",
            ),
        ] {
            let problem = route(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
