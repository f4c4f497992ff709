//! The control messages: each has 128 bytes, and one or no descriptor beside it.
//!
//! Integers have the byte order of the machine, because both ends run on it. Bytes behind the
//! fields of a message are sent as zeros and ignored.

/// Bytes of every message.
pub(super) const MESSAGE_BYTES: usize = 128;
/// Bytes of a name.
const NAME_BYTES: usize = 32;
/// Bytes of the text of a disconnection.
const REASON_BYTES: usize = 96;
/// The flag of a ring from the client to the server.
const TO_SERVER: u16 = 1;

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// The last message was accepted.
    Ack,
    /// The server's first message.
    Hello(Hello),
    /// The client's first message.
    Init(Init),
    /// A part of the shared memory, with a memfd.
    AddRegion {
        /// The number, from 0.
        index: u16,
        /// Bytes of the region.
        bytes: u64,
    },
    /// A ring, with an eventfd.
    AddRing(AddRing),
    /// The client has named everything.
    Connect,
    /// The server has mapped everything.
    Connected,
    /// The connection ends.
    Disconnect(String),
}

/// What a server can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    /// Name of the sending program.
    pub(super) name: String,
    /// The lowest and the highest version.
    pub(super) versions: [u16; 2],
    /// The highest number of a region.
    pub(super) last_region: u16,
    /// The highest number of a ring to the client, and to the server.
    pub(super) last_rings: [u16; 2],
    /// Binary logarithm of the largest ring's size.
    pub(super) most_shift: u8,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) version: u16,
    /// Number of the interface.
    pub(super) id: u32,
    /// 0 for Ethernet.
    pub(super) mode: u8,
    /// Name of the sending program.
    pub(super) name: String,
}

/// A ring of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddRing {
    pub(super) direction: Direction,
    /// The number in its direction.
    pub(super) index: u16,
    /// The region with the ring.
    pub(super) region: u16,
    /// The place in the region.
    pub(super) offset: u32,
    /// Binary logarithm of its size.
    pub(super) shift: u8,
    /// Bytes in front of each frame that are not part of it.
    pub(super) header_bytes: u16,
}

/// The direction of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

impl Message {
    /// Reads a message; `None` if it is of no known type.
    pub(super) fn parse(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let u16_at = |at| u16::from_ne_bytes(array(bytes, at));
        let u32_at = |at| u32::from_ne_bytes(array(bytes, at));
        Some(match u16_at(0) {
            1 => Self::Ack,
            2 => Self::Hello(Hello {
                name: text(&bytes[2..2 + NAME_BYTES]),
                versions: [u16_at(34), u16_at(36)],
                last_region: u16_at(38),
                last_rings: [u16_at(40), u16_at(42)],
                most_shift: bytes[44],
            }),
            3 => Self::Init(Init {
                version: u16_at(2),
                id: u32_at(4),
                mode: bytes[8],
                name: text(&bytes[33..33 + NAME_BYTES]),
            }),
            4 => Self::AddRegion {
                index: u16_at(2),
                bytes: u64::from_ne_bytes(array(bytes, 4)),
            },
            5 => Self::AddRing(AddRing {
                direction: if u16_at(2) & TO_SERVER != 0 {
                    Direction::ToServer
                } else {
                    Direction::ToClient
                },
                index: u16_at(4),
                region: u16_at(6),
                offset: u32_at(8),
                shift: bytes[12],
                header_bytes: u16_at(13),
            }),
            6 => Self::Connect,
            7 => Self::Connected,
            8 => Self::Disconnect(text(&bytes[6..6 + REASON_BYTES])),
            _ => return None,
        })
    }

    /// Writes the message.
    pub(super) fn bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut writer = Writer::new();
        match self {
            Self::Ack => writer.u16(1),
            Self::Hello(hello) => hello.write(&mut writer),
            Self::Init(init) => init.write(&mut writer),
            Self::AddRegion { index, bytes } => {
                writer.u16(4);
                writer.u16(*index);
                writer.put(&bytes.to_ne_bytes());
            }
            Self::AddRing(ring) => ring.write(&mut writer),
            Self::Connect => writer.u16(6),
            Self::Connected => writer.u16(7),
            Self::Disconnect(reason) => {
                writer.u16(8);
                writer.put(&0_u32.to_ne_bytes());
                writer.text(reason, REASON_BYTES);
            }
        }
        writer.bytes
    }
}

impl Hello {
    fn write(&self, writer: &mut Writer) {
        let Self {
            name,
            versions: [least, most],
            last_region,
            last_rings: [to_client, to_server],
            most_shift,
        } = self;
        writer.u16(2);
        writer.text(name, NAME_BYTES);
        for field in [least, most, last_region, to_client, to_server] {
            writer.u16(*field);
        }
        writer.put(&[*most_shift]);
    }
}

impl Init {
    fn write(&self, writer: &mut Writer) {
        let Self {
            version,
            id,
            mode,
            name,
        } = self;
        writer.u16(3);
        writer.u16(*version);
        writer.put(&id.to_ne_bytes());
        writer.put(&[*mode]);
        // No secret.
        writer.put(&[0; 24]);
        writer.text(name, NAME_BYTES);
    }
}

impl AddRing {
    fn write(&self, writer: &mut Writer) {
        let Self {
            direction,
            index,
            region,
            offset,
            shift,
            header_bytes,
        } = *self;
        writer.u16(5);
        writer.u16(match direction {
            Direction::ToServer => TO_SERVER,
            Direction::ToClient => 0,
        });
        writer.u16(index);
        writer.u16(region);
        writer.put(&offset.to_ne_bytes());
        writer.put(&[shift]);
        writer.u16(header_bytes);
    }
}

/// A message that is written field by field.
struct Writer {
    bytes: [u8; MESSAGE_BYTES],
    at: usize,
}

impl Writer {
    const fn new() -> Self {
        Self {
            bytes: [0; MESSAGE_BYTES],
            at: 0,
        }
    }

    fn put(&mut self, field: &[u8]) {
        let end = self.at + field.len();
        self.bytes[self.at..end].copy_from_slice(field);
        self.at = end;
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_ne_bytes());
    }

    /// A text that ends with a zero in a field of `field_bytes`.
    fn text(&mut self, text: &str, field_bytes: usize) {
        let length = text.len().min(field_bytes - 1);
        self.bytes[self.at..self.at + length].copy_from_slice(&text.as_bytes()[..length]);
        self.at += field_bytes;
    }
}

fn array<const N: usize>(bytes: &[u8; MESSAGE_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// The text up to the first zero, with printable characters of ASCII alone: it is printed.
fn text(field: &[u8]) -> String {
    let bytes = field.iter().take_while(|byte| **byte != 0);
    let shown = bytes.map(|byte| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(fields: &[(usize, &[u8])]) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        for (at, field) in fields {
            bytes[*at..at + field.len()].copy_from_slice(field);
        }
        bytes
    }

    /// The bytes are those of a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn messages_have_the_layout_of_memif() {
        let name = || "abc".to_owned();
        for (message, bytes) in [
            (Message::Ack, with(&[(0, &[1])])),
            (
                Message::Hello(Hello {
                    name: name(),
                    versions: [0x0200, 0x0201],
                    last_region: 255,
                    last_rings: [3, 4],
                    most_shift: 14,
                }),
                with(&[
                    (0, &[2]),
                    (2, b"abc"),
                    (34, &[0, 2, 1, 2, 255, 0, 3, 0, 4, 0, 14]),
                ]),
            ),
            (
                Message::Init(Init {
                    version: 0x0200,
                    id: 7,
                    mode: 1,
                    name: name(),
                }),
                with(&[(0, &[3, 0, 0, 2, 7, 0, 0, 0, 1]), (33, b"abc")]),
            ),
            (
                Message::AddRegion {
                    index: 2,
                    bytes: 0x1_0000_0001,
                },
                with(&[(0, &[4, 0, 2, 0, 1, 0, 0, 0, 1])]),
            ),
            (
                Message::AddRing(AddRing {
                    direction: Direction::ToServer,
                    index: 1,
                    region: 2,
                    offset: 0x304,
                    shift: 10,
                    header_bytes: 12,
                }),
                with(&[(0, &[5, 0, 1, 0, 1, 0, 2, 0, 4, 3, 0, 0, 10, 12])]),
            ),
            (Message::Connect, with(&[(0, &[6])])),
            (Message::Connected, with(&[(0, &[7])])),
            (Message::Disconnect(name()), with(&[(0, &[8]), (6, b"abc")])),
        ] {
            assert_eq!(message.bytes(), bytes, "{message:?}");
            assert_eq!(Message::parse(&bytes), Some(message));
        }
    }

    #[test]
    fn unknown_types_are_refused_and_texts_are_printable() {
        for kind in [0, 9, 255] {
            assert_eq!(Message::parse(&with(&[(0, &[kind])])), None);
        }
        let shown = Message::parse(&with(&[(0, &[8]), (6, &[0x1b, b'[', 0xff, b'x'])]));
        assert_eq!(shown, Some(Message::Disconnect("?[?x".to_owned())));
        let long = Message::Disconnect("x".repeat(200));
        let expected = Message::Disconnect("x".repeat(95));
        assert_eq!(Message::parse(&long.bytes()), Some(expected));
    }
}
