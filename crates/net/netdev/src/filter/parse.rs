//! From the text of a filter to its expression.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::{Direction, Expression, Primitive, Protocol};

/// Bytes of the longest filter.
const MOST_BYTES: usize = 4_096;
/// Parentheses and negations inside each other: each takes room on the stack.
const MOST_DEPTH: usize = 50;
const OPERATORS: [&str; 4] = ["and", "&&", "or", "||"];
const PROTOCOLS: [(&str, Protocol); 7] = [
    ("ip", Protocol::Ip),
    ("ip6", Protocol::Ip6),
    ("arp", Protocol::Arp),
    ("tcp", Protocol::Tcp),
    ("udp", Protocol::Udp),
    ("icmp", Protocol::Icmp),
    ("icmp6", Protocol::Icmp6),
];

/// Why a text is not a filter. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is longer than `most` bytes.
    #[error("the filter has {bytes} bytes, the limit is {most}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// More parentheses and negations than `most` are inside each other.
    #[error("the filter has more than {most} nested parentheses and negations")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// Filters do not have this word.
    #[error(
        "unknown word `{word}` at character {position} of the filter: use a protocol (ip, ip6, \
         arp, tcp, udp, icmp, icmp6), src, dst, host, net, port, portrange, not, and, or"
    )]
    UnknownWord {
        /// The word.
        word: String,
        /// Position of the word.
        position: usize,
    },
    /// Another word has to be here.
    #[error("the filter needs {expected} at character {position}")]
    Expected {
        /// What has to be here.
        expected: &'static str,
        /// Position of the word that is here, or of the end.
        position: usize,
    },
    /// Names are not resolved.
    #[error("`{word}` at character {position} of the filter is not an IP address")]
    Address {
        /// The word.
        word: String,
        /// Position of the word.
        position: usize,
    },
    /// A network is an address and a length.
    #[error("`{word}` at character {position} of the filter is not a network such as 192.0.2.0/24")]
    Net {
        /// The word.
        word: String,
        /// Position of the word.
        position: usize,
    },
    /// The address of the network has bits behind the length.
    #[error("`{word}` at character {position} of the filter is not a network: use {net}")]
    HostBits {
        /// The word.
        word: String,
        /// Position of the word.
        position: usize,
        /// The network that has this address.
        net: IpNet,
    },
    /// Names are not resolved, and a range begins with its smaller port.
    #[error("`{word}` at character {position} of the filter is not {expected}")]
    Port {
        /// The word.
        word: String,
        /// Position of the word.
        position: usize,
        /// What has to be here.
        expected: &'static str,
    },
    /// The protocol has no ports.
    #[error("`{protocol}` at character {position} of the filter has no ports: use tcp or udp")]
    NoPorts {
        /// The protocol.
        protocol: String,
        /// Position of the protocol.
        position: usize,
    },
    /// The protocol has no addresses, or those of the other version.
    #[error(
        "`{protocol}` at character {position} of the filter has no such addresses: \
         write `{protocol} and host ...`, or leave it out"
    )]
    NoAddresses {
        /// The protocol.
        protocol: String,
        /// Position of the protocol.
        position: usize,
    },
}

/// Reads a filter; `None` for white space.
pub(super) fn expression(text: &str) -> Result<Option<Expression>, FilterError> {
    if text.len() > MOST_BYTES {
        return Err(FilterError::TooLong {
            bytes: text.len(),
            most: MOST_BYTES,
        });
    }
    let mut parser = Parser {
        words: words(text),
        next: 0,
        depth: 0,
        end: text.chars().count() + 1,
    };
    if parser.words.is_empty() {
        return Ok(None);
    }
    let found = parser.chain()?;
    if parser.peek().is_some() {
        return Err(parser.expected("`and`, `or` or its end"));
    }
    Ok(Some(found))
}

#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    position: usize,
}

/// Divides a text at white space, and around parentheses and the other signs.
fn words(text: &str) -> Vec<Word<'_>> {
    let is_sign = |letter: char| "()!&|".contains(letter);
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("&&") || rest.starts_with("||") {
            2
        } else if is_sign(first) {
            1
        } else {
            let end = rest.find(|letter: char| letter.is_whitespace() || is_sign(letter));
            end.unwrap_or(rest.len())
        };
        let before = &text[..text.len() - rest.len()];
        let (word, behind) = rest.split_at(length);
        words.push(Word {
            text: word,
            position: before.chars().count() + 1,
        });
        rest = behind.trim_start();
    }
    words
}

struct Parser<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    /// Terms that contain the next word.
    depth: usize,
    /// Position behind the text.
    end: usize,
}

impl<'a> Parser<'a> {
    /// Terms with `and` and `or` between them.
    fn chain(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.term()?;
        while let Some(operator) = self.take(&OPERATORS) {
            let (first, second) = (Box::new(left), Box::new(self.term()?));
            left = match operator.text {
                "and" | "&&" => Expression::And(first, second),
                _ => Expression::Or(first, second),
            };
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<Expression, FilterError> {
        if self.depth > MOST_DEPTH {
            return Err(FilterError::TooDeep { most: MOST_DEPTH });
        }
        self.depth += 1;
        let term = self.nested_term();
        self.depth -= 1;
        term
    }

    fn nested_term(&mut self) -> Result<Expression, FilterError> {
        if self.take(&["not", "!"]).is_some() {
            return Ok(Expression::Not(Box::new(self.term()?)));
        }
        if self.take(&["("]).is_none() {
            return Ok(Expression::Primitive(self.primitive()?));
        }
        let inner = self.chain()?;
        match self.take(&[")"]) {
            Some(_) => Ok(inner),
            None => Err(self.expected("`and`, `or` or `)`")),
        }
    }

    fn primitive(&mut self) -> Result<Primitive, FilterError> {
        let protocol = self.protocol();
        let direction = self.direction();
        let kind = self.take(&["host", "net", "port", "portrange"]);
        let net = match (kind.map(|word| word.text), protocol, direction) {
            (Some("port"), _, _) => {
                let ports = self.port()?;
                return primitive_of_ports(protocol, direction, ports);
            }
            (Some("portrange"), _, _) => {
                let ports = self.port_range()?;
                return primitive_of_ports(protocol, direction, ports);
            }
            (Some("net"), _, _) => self.net()?,
            (Some(_), _, _) | (None, _, Some(_)) => self.host()?,
            (None, Some((protocol, _)), None) => return Ok(Primitive::Protocol(protocol)),
            (None, None, None) => self.bare_host()?,
        };
        primitive_of_net(protocol, direction, net)
    }

    fn protocol(&mut self) -> Option<(Protocol, Word<'a>)> {
        let word = self.peek()?;
        let (_, protocol) = PROTOCOLS.into_iter().find(|(name, _)| *name == word.text)?;
        self.next += 1;
        Some((protocol, word))
    }

    /// `src`, `dst`, or both with `or` or `and` between them.
    fn direction(&mut self) -> Option<Direction> {
        let first = self.take(&["src", "dst"])?;
        let (alone, other) = match first.text {
            "src" => (Direction::Source, "dst"),
            _ => (Direction::Destination, "src"),
        };
        let following = self.words.get(self.next..self.next + 2);
        let joined = match following {
            Some([operator, second]) if second.text == other => match operator.text {
                "or" | "||" => Some(Direction::Either),
                "and" | "&&" => Some(Direction::Both),
                _ => None,
            },
            _ => None,
        };
        if joined.is_some() {
            self.next += 2;
        }
        Some(joined.unwrap_or(alone))
    }

    /// An address without a keyword.
    fn bare_host(&mut self) -> Result<IpNet, FilterError> {
        let is_word = |word: &Word<'_>| !OPERATORS.contains(&word.text) && word.text != ")";
        let Some(word) = self.peek().filter(is_word) else {
            return Err(self.expected("a condition such as `tcp port 6379`"));
        };
        self.host().map_err(|_| FilterError::UnknownWord {
            word: word.text.to_owned(),
            position: word.position,
        })
    }

    fn host(&mut self) -> Result<IpNet, FilterError> {
        let word = self.value("an IP address")?;
        let address = word.text.parse::<IpAddr>();
        address.map(IpNet::from).map_err(|_| FilterError::Address {
            word: word.text.to_owned(),
            position: word.position,
        })
    }

    fn net(&mut self) -> Result<IpNet, FilterError> {
        let Word { text, position } = self.value("a network")?;
        let word = text.to_owned();
        match text.parse::<IpNet>() {
            Ok(net) if net.trunc() == net => Ok(net),
            Ok(net) => Err(FilterError::HostBits {
                word,
                position,
                net: net.trunc(),
            }),
            Err(_) => Err(FilterError::Net { word, position }),
        }
    }

    fn port(&mut self) -> Result<RangeInclusive<u16>, FilterError> {
        let expected = "a port, 0 to 65535";
        let word = self.value(expected)?;
        let port: Result<u16, _> = word.text.parse();
        port.map(|port| port..=port)
            .map_err(|_| not_a_port(word, expected))
    }

    fn port_range(&mut self) -> Result<RangeInclusive<u16>, FilterError> {
        let expected = "a range of ports such as 6000-6008";
        let word = self.value(expected)?;
        let range = word.text.split_once('-').and_then(|(first, last)| {
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(first..=last)
        });
        range.ok_or_else(|| not_a_port(word, expected))
    }

    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    /// The next word, whatever it is.
    fn value(&mut self, expected: &'static str) -> Result<Word<'a>, FilterError> {
        let word = self.peek().ok_or_else(|| self.expected(expected))?;
        self.next += 1;
        Ok(word)
    }

    /// The next word, if it is one of these.
    fn take(&mut self, accepted: &[&str]) -> Option<Word<'a>> {
        let word = self.peek().filter(|word| accepted.contains(&word.text))?;
        self.next += 1;
        Some(word)
    }

    fn expected(&self, expected: &'static str) -> FilterError {
        let position = self.peek().map_or(self.end, |word| word.position);
        FilterError::Expected { expected, position }
    }
}

fn not_a_port(word: Word<'_>, expected: &'static str) -> FilterError {
    FilterError::Port {
        word: word.text.to_owned(),
        position: word.position,
        expected,
    }
}

fn primitive_of_ports(
    protocol: Option<(Protocol, Word<'_>)>,
    direction: Option<Direction>,
    ports: RangeInclusive<u16>,
) -> Result<Primitive, FilterError> {
    match protocol {
        None | Some((Protocol::Tcp | Protocol::Udp, _)) => Ok(Primitive::Ports {
            protocol: protocol.map(|(protocol, _)| protocol),
            direction: direction.unwrap_or(Direction::Either),
            ports,
        }),
        Some((_, word)) => Err(FilterError::NoPorts {
            protocol: word.text.to_owned(),
            position: word.position,
        }),
    }
}

fn primitive_of_net(
    protocol: Option<(Protocol, Word<'_>)>,
    direction: Option<Direction>,
    net: IpNet,
) -> Result<Primitive, FilterError> {
    match (protocol, net) {
        (None, _)
        | (Some((Protocol::Ip | Protocol::Arp, _)), IpNet::V4(_))
        | (Some((Protocol::Ip6, _)), IpNet::V6(_)) => Ok(Primitive::Net {
            protocol: protocol.map(|(protocol, _)| protocol),
            direction: direction.unwrap_or(Direction::Either),
            net,
        }),
        (Some((_, word)), _) => Err(FilterError::NoAddresses {
            protocol: word.text.to_owned(),
            position: word.position,
        }),
    }
}
