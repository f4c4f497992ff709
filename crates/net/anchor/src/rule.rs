//! Routing rules: which packets of this host are looked up in the gateway's table.
//!
//! Spec: `man 8 ip-rule`, kernel net/core/fib_rules.c. The rule of a served port, for the replies
//! of its server, is `iif lo from S ipproto tcp sport SP lookup TABLE`. That of outgoing
//! connections is `iif lo fwmark MARK lookup TABLE`. `iif lo` selects packets that this host sends,
//! and spares received packets the dissection of their ports. [`PROTOCOL`] marks what a gateway has
//! made.
//!
//! What the rule of a port permits to local users: nothing while the server listens, because no
//! other user can bind S and SP then. Otherwise a socket that is bound to both reaches transparent
//! listeners of this host at every destination; its source is S, never another address. Marks need
//! CAP_NET_ADMIN.

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

/// The packets of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packets {
    /// Replies of the server with this address and port, which is not IPv4-mapped.
    Replies(SocketAddr),
    /// Packets of marked sockets.
    Marked {
        /// The mark.
        mark: u32,
        /// Of IPv6, or of IPv4.
        is_v6: bool,
    },
}

/// A rule of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) packets: Packets,
    /// The table in which they are looked up.
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
            packets,
            table,
            preference,
        } = *self;
        let mut message = RuleMessage::default();
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Iifname("lo".to_owned()),
            RuleAttribute::Table(table),
            RuleAttribute::Priority(preference),
            RuleAttribute::Protocol(PROTOCOL),
        ];
        match packets {
            Packets::Replies(server) => {
                let port = server.port();
                message.header.family = family(server.ip());
                message.header.src_len = if server.is_ipv4() { 32 } else { 128 };
                message.attributes.extend([
                    RuleAttribute::Source(server.ip()),
                    RuleAttribute::IpProtocol(IpProtocol::Tcp),
                    RuleAttribute::SourcePortRange(RulePortRange {
                        start: port,
                        end: port,
                    }),
                ]);
            }
            Packets::Marked { mark, is_v6 } => {
                message.header.family = if is_v6 {
                    AddressFamily::Inet6
                } else {
                    AddressFamily::Inet
                };
                message.attributes.push(RuleAttribute::FwMark(mark));
            }
        }
        message
    }

    /// The rule in `message`; `None` if no gateway has made it.
    fn parse(message: &RuleMessage) -> Option<Self> {
        let (mut source, mut port, mut is_ours) = (None, None, false);
        let mut mark = None;
        // The kernel leaves out a preference of 0.
        let (mut table, mut preference) = (None, 0);
        for attribute in &message.attributes {
            if let RuleAttribute::Source(found) = attribute {
                source = Some(*found);
            } else if let RuleAttribute::SourcePortRange(found) = attribute {
                port = Some(found.start);
            } else if let RuleAttribute::FwMark(found) = attribute {
                mark = Some(*found);
            } else if let RuleAttribute::Table(found) = attribute {
                table = Some(*found);
            } else if let RuleAttribute::Priority(found) = attribute {
                preference = *found;
            } else if let RuleAttribute::Protocol(found) = attribute {
                is_ours = *found == PROTOCOL;
            }
        }
        let rule = Self {
            packets: match mark {
                Some(mark) => Packets::Marked {
                    mark,
                    is_v6: message.header.family == AddressFamily::Inet6,
                },
                None => Packets::Replies(SocketAddr::new(source?, port?)),
            },
            table: table?,
            preference,
        };
        is_ours.then_some(rule)
    }
}

impl fmt::Display for Rule {
    /// In the words of ip-rule(8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule pref {} iif lo ", self.preference)?;
        match self.packets {
            Packets::Replies(server) => {
                let (address, port) = (server.ip(), server.port());
                write!(f, "from {address} ipproto tcp sport {port}")?;
            }
            Packets::Marked { mark, .. } => write!(f, "fwmark {mark:#x}")?,
        }
        write!(f, " lookup {}", self.table)
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
