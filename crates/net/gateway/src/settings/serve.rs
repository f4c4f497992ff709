//! `[[serve]]`: addresses and ports whose connections the gateway takes off the kernel's path.
//!
//! The anchor of a remote connection comes over `lo`, where most firewalls accept everything.
//! Therefore each `[[serve]]` names the clients that it admits (`docs/gateway.md`).

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::address::{host, prefix};
use super::output::Output;
use super::reader::{Table, quoted};
use super::tcp::CONNECTIONS;

/// The default of `backlog`. The server has accepted each of these connections, so that forged SYNs
/// take so many of its processes or threads: PostgreSQL has 100 by default.
const BACKLOG: u32 = 64;
const PORTS: RangeInclusive<u16> = 1..=65_535;

/// Ports that are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serve {
    /// The address; `None` for all addresses of the devices.
    pub address: Option<IpAddr>,
    /// The ports: at least one, each from 1 on.
    pub ports: Vec<u16>,
    /// Most connections in handshakes; beyond, clients get SYN cookies.
    pub backlog: u32,
    /// Most connections of all these ports at a time; `None` for `tcp.connections`.
    pub connections: Option<u32>,
    /// Most connections of one client to all these ports at a time; `None` for `connections`. A
    /// client is an address of IPv4 or a network of 64 bits of IPv6.
    pub connections_per_client: Option<u32>,
    /// The admitted clients.
    pub clients: Clients,
}

/// Which clients are admitted. SYNs of all others are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clients {
    /// Prefixes of admitted clients; empty for all clients.
    pub allow: Vec<IpNet>,
    /// Prefixes of clients that are not admitted, although `allow` admits them.
    pub deny: Vec<IpNet>,
}

impl Clients {
    /// Whether a client is admitted.
    #[must_use]
    pub fn admits(&self, client: IpAddr) -> bool {
        let is_in = |prefixes: &[IpNet]| prefixes.iter().any(|prefix| prefix.contains(&client));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

impl Serve {
    /// Ports at all addresses, for all clients.
    pub(crate) fn plain(ports: Vec<u16>) -> Self {
        Self {
            address: None,
            ports,
            backlog: BACKLOG,
            connections: None,
            connections_per_client: None,
            clients: Clients::default(),
        }
    }

    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let example = "write a port such as 6379, or a list of ports";
        table.require("port", example);
        let ports = table.whole_list("port", &PORTS);
        if ports.as_ref().is_some_and(Vec::is_empty) {
            table.problem("port", example);
        }
        let address = if table.is_word("address", "any") {
            None
        } else {
            let at = |text: &str| host(text).map_err(|what| format!("{what}, or \"any\""));
            table.parsed_by("address", at)
        };
        let clients = Clients {
            allow: table.parsed_list("allow", prefix).unwrap_or_default(),
            deny: table.parsed_list("deny", prefix).unwrap_or_default(),
        };
        check_clients(table, &clients, address);
        Self {
            address,
            ports: ports.unwrap_or_default(),
            backlog: table.whole("backlog", &(1..=1 << 20)).unwrap_or(BACKLOG),
            connections: table.whole("connections", &CONNECTIONS),
            connections_per_client: table.whole("connections_per_client", &CONNECTIONS),
            clients,
        }
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self {
            address,
            ports,
            backlog,
            connections,
            connections_per_client,
            clients: Clients { allow, deny },
        } = self;
        out.tables("serve");
        match ports.as_slice() {
            [port] => out.key("port", port),
            ports => out.key("port", format!("{ports:?}")),
        }
        if let Some(address) = address {
            out.text("address", address);
        }
        if *backlog != BACKLOG {
            out.key("backlog", backlog);
        }
        if let Some(connections) = connections {
            out.key("connections", connections);
        }
        if let Some(connections) = connections_per_client {
            out.key("connections_per_client", connections);
        }
        out.texts("allow", allow);
        out.texts("deny", deny);
    }
}

/// Reports prefixes without effect.
fn check_clients(table: &Table<'_>, clients: &Clients, address: Option<IpAddr>) {
    let Clients { allow, deny } = clients;
    for denied in deny {
        if let Some(allowed) = allow.iter().find(|allowed| denied.contains(*allowed)) {
            let what = if allowed == denied {
                format!("{denied} is in allow, too; remove it from one of them")
            } else {
                format!("{denied} contains {allowed} of allow, which then admits no client")
            };
            table.problem("deny", &what);
        }
    }
    for (key, prefixes) in [("allow", allow), ("deny", deny)] {
        let is_other = |prefix: &&IpNet| {
            address.is_some_and(|address| address.is_ipv4() != prefix.addr().is_ipv4())
        };
        if let Some(prefix) = prefixes.iter().find(is_other) {
            let shown = quoted(&prefix.to_string());
            let what = format!("{shown} is of another version of IP than address; remove it");
            table.problem(key, &what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_clients_are_not_admitted_although_they_are_allowed() {
        let prefixes = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let some = Clients {
            allow: prefixes(&["10.0.0.0/8", "2001:db8::/32"]),
            deny: prefixes(&["10.1.0.0/16"]),
        };
        let all_but_one = Clients {
            allow: Vec::new(),
            deny: prefixes(&["10.1.2.3/32"]),
        };
        for (client, in_some, in_all_but_one) in [
            ("10.0.0.1", true, true),
            ("10.1.2.3", false, false),
            ("10.1.2.4", false, true),
            ("192.168.1.1", false, true),
            ("2001:db8::7", true, true),
            ("2001:db9::7", false, true),
        ] {
            let address = client.parse().unwrap();
            assert_eq!(some.admits(address), in_some, "{client}");
            assert_eq!(all_but_one.admits(address), in_all_but_one, "{client}");
            assert!(Clients::default().admits(address));
        }
    }
}
