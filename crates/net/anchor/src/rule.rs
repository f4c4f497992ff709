//! The routing rule of a served port: replies of the server are looked up in the gateway's table.
//!
//! Spec: `man 8 ip-rule`, kernel net/core/fib_rules.c. The rule is `iif lo from S ipproto tcp sport
//! SP lookup TABLE`. `iif lo` selects packets that this host sends, and spares received packets the
//! dissection of their ports. [`PROTOCOL`] marks what a gateway has made.
//!
//! What the rule permits to local users: nothing while the server listens, because no other user
//! can bind S and SP then. Otherwise a socket that is bound to both reaches transparent listeners
//! of this host at every destination; its source is S, never another address.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use crate::netlink::Netlink;

/// The origin of rules and routes (`protocol` in ip-rule(8)) that a gateway has made. No routing
/// daemon has this number (iproute2, etc/iproute2/rt_protos).
pub(crate) const PROTOCOL: RouteProtocol = RouteProtocol::Other(79);

/// A rule of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Address and port of the server, not IPv4-mapped.
    pub(crate) served: SocketAddr,
    /// The table in which its replies are looked up.
    pub(crate) table: u32,
    /// Place among the rules: low numbers first.
    pub(crate) preference: u32,
}

impl Rule {
    /// Adds the rule; EEXIST if it is there.
    pub(crate) fn add(&self, netlink: &mut Netlink) -> io::Result<()> {
        let request = RouteNetlinkMessage::NewRule(self.message());
        netlink.change(request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes the rule; ENOENT if it is not there.
    pub(crate) fn remove(&self, netlink: &mut Netlink) -> io::Result<()> {
        netlink.change(RouteNetlinkMessage::DelRule(self.message()), 0)
    }

    fn message(&self) -> RuleMessage {
        let Self {
            served,
            table,
            preference,
        } = *self;
        let port = served.port();
        let mut message = RuleMessage::default();
        message.header.family = family(served.ip());
        message.header.src_len = if served.is_ipv4() { 32 } else { 128 };
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Iifname("lo".to_owned()),
            RuleAttribute::Source(served.ip()),
            RuleAttribute::IpProtocol(IpProtocol::Tcp),
            RuleAttribute::SourcePortRange(RulePortRange {
                start: port,
                end: port,
            }),
            RuleAttribute::Table(table),
            RuleAttribute::Priority(preference),
            RuleAttribute::Protocol(PROTOCOL),
        ];
        message
    }

    /// The rule in `message`; `None` if no gateway has made it.
    fn parse(message: &RuleMessage) -> Option<Self> {
        let (mut source, mut port, mut is_ours) = (None, None, false);
        // The kernel leaves out a preference of 0.
        let (mut table, mut preference) = (None, 0);
        for attribute in &message.attributes {
            if let RuleAttribute::Source(found) = attribute {
                source = Some(*found);
            } else if let RuleAttribute::SourcePortRange(found) = attribute {
                port = Some(found.start);
            } else if let RuleAttribute::Table(found) = attribute {
                table = Some(*found);
            } else if let RuleAttribute::Priority(found) = attribute {
                preference = *found;
            } else if let RuleAttribute::Protocol(found) = attribute {
                is_ours = *found == PROTOCOL;
            }
        }
        let rule = Self {
            served: SocketAddr::new(source?, port?),
            table: table?,
            preference,
        };
        is_ours.then_some(rule)
    }
}

impl fmt::Display for Rule {
    /// In the words of ip-rule(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, port) = (self.served.ip(), self.served.port());
        write!(
            f,
            "rule pref {} iif lo from {address} ipproto tcp sport {port} lookup {}",
            self.preference, self.table
        )
    }
}

/// All rules that gateways have made, of both families.
pub(crate) fn made_by_gateways(netlink: &mut Netlink) -> io::Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RuleMessage::default();
        request.header.family = family;
        for answer in netlink.dump(&RouteNetlinkMessage::GetRule(request))? {
            // A kernel without IPv6 answers with the rules of all families.
            if let RouteNetlinkMessage::NewRule(message) = answer
                && message.header.family == family
            {
                rules.extend(Rule::parse(&message));
            }
        }
    }
    Ok(rules)
}

/// The family of an address in routing messages.
pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
