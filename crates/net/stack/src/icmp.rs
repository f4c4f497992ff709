//! ICMP: echo, errors about this host's segments, and errors about the packets of others.
//!
//! Spec: RFC 1122 §3.2.2, RFC 4443 §2.4 (when no error is sent), RFC 1812 §4.3.2.8 (rates), RFC
//! 5927 (what an error may do to a connection).

use saiga_tcp::{Connection, Context, IcmpError, Instant};
use saiga_wire::frame::{Network, Packet};
use saiga_wire::icmp::Echo;
use saiga_wire::ip::{Addresses, Protocol};
use saiga_wire::quote::Quoted;
use saiga_wire::{Malformed, ethernet, icmp4, icmp6, ipv6, ndp};

use crate::config::Presence;
use crate::flow::Flow;
use crate::fragment::Expired;
use crate::host::{header_v4, header_v6};
use crate::owner::Owner;
use crate::path::segment_size;
use crate::stack::{Stack, Verdict};

/// Codes of "destination unreachable" by which a host refuses (RFC 1122 §4.2.3.9): protocol and
/// port of IPv4, port of IPv6.
const REFUSING_V4: [u8; 2] = [2, 3];
const REFUSING_V6: u8 = 4;

/// An error for the source of a packet.
enum Answer<'a> {
    V4(icmp4::Message<'a>),
    V6(icmp6::Message<'a>),
}

impl Stack {
    /// Handles an ICMP message in an IPv4 packet.
    pub(crate) fn on_icmp4(
        &mut self,
        packet: &Packet<'_>,
        message: &icmp4::Message<'_>,
        is_group: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let error = match *message {
            icmp4::Message::EchoRequest(echo) => {
                return self.on_echo(&packet.network, &echo, is_group, now);
            }
            icmp4::Message::Unreachable { code, .. } if REFUSING_V4.contains(&code) => {
                IcmpError::Refused
            }
            icmp4::Message::Unreachable { .. } | icmp4::Message::TimeExceeded { .. } => {
                IcmpError::Unreachable
            }
            icmp4::Message::FragmentationNeeded { mtu, .. } => IcmpError::TooBig {
                mss: segment_size(mtu.into(), false),
            },
            // Nothing that a host can act on, or no error.
            icmp4::Message::ParameterProblem { .. }
            | icmp4::Message::EchoReply(_)
            | icmp4::Message::Other(_) => return Verdict::NotOurs,
        };
        let quoted = message.quoted();
        self.on_error(packet, quoted.as_ref(), error, now, owner)
    }

    /// Handles an ICMPv6 message.
    pub(crate) fn on_icmp6(
        &mut self,
        interface: u8,
        packet: &Packet<'_>,
        message: &icmp6::Message<'_>,
        is_group: bool,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let error = match message {
            icmp6::Message::Ndp(message) => {
                return self.on_discovery(interface, packet, message, now);
            }
            icmp6::Message::EchoRequest(echo) => {
                return self.on_echo(&packet.network, echo, is_group, now);
            }
            icmp6::Message::Unreachable { code, .. } if *code == REFUSING_V6 => IcmpError::Refused,
            icmp6::Message::Unreachable { .. } | icmp6::Message::TimeExceeded { .. } => {
                IcmpError::Unreachable
            }
            icmp6::Message::PacketTooBig { mtu, .. } => IcmpError::TooBig {
                mss: segment_size(*mtu, true),
            },
            icmp6::Message::ParameterProblem { .. }
            | icmp6::Message::EchoReply(_)
            | icmp6::Message::Other(_) => return Verdict::NotOurs,
        };
        let quoted = message.quoted();
        self.on_error(packet, quoted.as_ref(), error, now, owner)
    }

    fn on_discovery(
        &mut self,
        interface: u8,
        packet: &Packet<'_>,
        message: &ndp::Message<'_>,
        now: Instant,
    ) -> Verdict {
        match packet.network {
            Network::V6(header) => self.on_ndp(interface, header.source, message, now),
            Network::V4(_) => Verdict::NotOurs,
        }
    }

    /// An error about a packet of this host.
    fn on_error(
        &mut self,
        packet: &Packet<'_>,
        quoted: Option<&Quoted>,
        error: IcmpError,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let to = packet.network.addresses().destination();
        match quoted {
            // An error comes to the address whose packet it quotes.
            Some(quoted) if quoted.addresses.source() == to => {
                self.on_quoted(quoted, error, now, owner)
            }
            Some(_) | None => Verdict::NotOurs,
        }
    }

    /// An error about a segment of this host.
    fn on_quoted(
        &mut self,
        quoted: &Quoted,
        error: IcmpError,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        let (Protocol::TCP, Some(ports), Some(seq)) = (quoted.protocol, quoted.ports, quoted.seq)
        else {
            return Verdict::NotOurs;
        };
        let flow = Flow {
            addresses: quoted.addresses,
            ports,
        };
        let found = self.connections.find(&flow);
        let found = found.and_then(|index| self.connections.slots.id(index));
        let Some(id) = found else {
            // On a device with several queues, an error comes to any of them.
            let is_size = matches!(error, IcmpError::TooBig { .. });
            if is_size && self.host.routing.is_own(flow.addresses.source()) {
                return Verdict::Shared;
            }
            return Verdict::NotOurs;
        };
        let run = |connection: &mut Connection, context: &mut Context<'_>| {
            let size = |connection: &Connection, context: &Context<'_>| {
                connection.info(context).map(|info| info.mss)
            };
            let before = size(connection, context);
            let events = connection.on_icmp(error, seq, context);
            (events, size(connection, context) < before)
        };
        let done = self
            .connections
            .with_engine(id, &mut self.counters, now, run);
        if let Some((events, is_smaller)) = done {
            // This connection has checked the quoted number; the others rely on that.
            if let (IcmpError::TooBig { mss }, true) = (error, is_smaller) {
                self.paths.learn(flow.remote().ip(), mss, now);
            }
            self.connections.report(id, &events, owner);
        }
        Verdict::Taken
    }

    /// Neighbours that do not answer: their connections learn that the host is unreachable.
    pub(crate) fn fail_unreachable(&mut self, now: Instant, owner: &mut impl Owner) {
        while let Some(frame) = self.host.neighbours.poll_failed() {
            let Ok((link, packet)) = ethernet::Header::parse(&frame) else {
                continue;
            };
            let quoted = match link.ether_type {
                ethernet::EtherType::IPV6 => Quoted::of_ipv6(packet),
                _ => Quoted::of_ipv4(packet),
            };
            if let Some(quoted) = quoted {
                let _taken = self.on_quoted(&quoted, IcmpError::Unreachable, now, owner);
            }
        }
    }

    /// Answers an echo request to an own address. Requests to groups are ignored (RFC 1122
    /// §3.2.2.6), because their source can be forged.
    fn on_echo(
        &mut self,
        network: &Network,
        echo: &Echo<'_>,
        is_group: bool,
        now: Instant,
    ) -> Verdict {
        let addresses = network.addresses();
        let is_own = self.host.routing.is_own(addresses.destination());
        if is_group || !is_own || self.config.presence == Presence::BesideKernel {
            return Verdict::NotOurs;
        }
        if !self.limits.echoes.allows(now) {
            self.counters.answers_limited += 1;
            return Verdict::Taken;
        }
        let answer = match addresses {
            Addresses::V4 { .. } => Answer::V4(icmp4::Message::EchoReply(*echo)),
            Addresses::V6 { .. } => Answer::V6(icmp6::Message::EchoReply(*echo)),
        };
        self.answer(&addresses, &answer, now);
        Verdict::Taken
    }

    /// A packet of a protocol that this host does not have.
    pub(crate) fn on_other(
        &mut self,
        packet: &Packet<'_>,
        is_group: bool,
        now: Instant,
    ) -> Verdict {
        let addresses = packet.network.addresses();
        let is_own = self.host.routing.is_own(addresses.destination());
        if is_group || !is_own || self.config.presence == Presence::BesideKernel {
            return Verdict::NotOurs;
        }
        let is_udp = packet.network.protocol() == Protocol::UDP;
        match packet.network {
            Network::V4(_) => {
                let code = if is_udp {
                    icmp4::PORT_UNREACHABLE
                } else {
                    icmp4::PROTOCOL_UNREACHABLE
                };
                let quote = icmp4::quotable(packet.bytes);
                let message = icmp4::Message::Unreachable { code, quote };
                self.refuse_packet(&addresses, &Answer::V4(message), now);
            }
            Network::V6(_) if is_udp => {
                let quote = icmp6::quotable(packet.bytes);
                let code = icmp6::PORT_UNREACHABLE;
                let message = icmp6::Message::Unreachable { code, quote };
                self.refuse_packet(&addresses, &Answer::V6(message), now);
            }
            Network::V6(_) => self.on_parameter_problem(packet.bytes, now),
        }
        Verdict::Taken
    }

    /// Counts a packet that is malformed. IPv6 asks for an error about some of them.
    pub(crate) fn on_malformed(
        &mut self,
        reason: Malformed,
        packet: &[u8],
        now: Instant,
    ) -> Verdict {
        self.count(reason);
        if self.config.presence == Presence::Alone {
            self.on_parameter_problem(packet, now);
        }
        Verdict::NotOurs
    }

    /// Tells the source of an IPv6 packet what is wrong with it (RFC 8200 §4.2, RFC 4443 §3.4).
    fn on_parameter_problem(&mut self, packet: &[u8], now: Instant) {
        let problem = ipv6::parameter_problem(packet);
        let Some((problem, quoted)) = problem.zip(Quoted::of_ipv6(packet)) else {
            return;
        };
        if self.host.routing.is_own(quoted.addresses.destination()) {
            let quote = icmp6::quotable(packet);
            let message = icmp6::Message::ParameterProblem { problem, quote };
            self.refuse_packet(&quoted.addresses, &Answer::V6(message), now);
        }
    }

    /// Tells the source of a packet that fragments of it were missing.
    pub(crate) fn on_reassembly_timeout(&mut self, expired: &Expired, now: Instant) {
        if self.config.presence == Presence::BesideKernel {
            return;
        }
        let answer = match expired.addresses {
            Addresses::V4 { .. } => Answer::V4(icmp4::Message::TimeExceeded {
                code: icmp4::REASSEMBLY_TIME_EXCEEDED,
                quote: icmp4::quotable(&expired.bytes),
            }),
            Addresses::V6 { .. } => Answer::V6(icmp6::Message::TimeExceeded {
                code: icmp6::REASSEMBLY_TIME_EXCEEDED,
                quote: icmp6::quotable(&expired.bytes),
            }),
        };
        self.refuse_packet(&expired.addresses, &answer, now);
    }

    /// Sends an error to the source of a packet with `addresses`, if the source is a host and the
    /// limit allows it.
    fn refuse_packet(&mut self, addresses: &Addresses, answer: &Answer<'_>, now: Instant) {
        if !self.is_host(addresses.source()) {
            return;
        }
        if !self.limits.errors.allows(now) {
            self.counters.answers_limited += 1;
            return;
        }
        self.answer(addresses, answer, now);
    }

    /// Sends an ICMP message to the source of a packet with `addresses`.
    fn answer(&mut self, addresses: &Addresses, answer: &Answer<'_>, now: Instant) {
        let to = addresses.reversed();
        self.host
            .send(to, now, &mut self.counters, |writer| match (to, answer) {
                (
                    Addresses::V4 {
                        source,
                        destination,
                    },
                    Answer::V4(message),
                ) => writer.icmp4(&header_v4(source, destination), message),
                (
                    Addresses::V6 {
                        source,
                        destination,
                    },
                    Answer::V6(message),
                ) => writer.icmp6(&header_v6(source, destination), message),
                // The versions are the same: the answer was made for these addresses.
                (Addresses::V4 { .. }, Answer::V6(_)) | (Addresses::V6 { .. }, Answer::V4(_)) => {
                    Err(saiga_wire::EmitError::BufferTooSmall { needed: 0 })
                }
            });
    }
}
