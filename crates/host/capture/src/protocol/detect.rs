//! Which protocol a connection speaks, from its first bytes or its port.

use super::{Chunk, Side};
use crate::Protocol;

const HTTP_METHODS: [&[u8]; 9] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
];
/// Codes in the first message of a PostgreSQL client: protocol 3, cancel, TLS, GSSAPI.
const POSTGRES_CODES: [u32; 5] = [196_608, 196_610, 80_877_102, 80_877_103, 80_877_104];
const POSTGRES_TAGS: &[u8] = b"QPBEDCSHF";
const LONGEST_STARTUP: u32 = 10_000;
const MYSQL_PROTOCOL: u8 = 10;
const LAST_MYSQL_COMMAND: u8 = 0x1f;
const MARIADB_BULK_EXECUTE: u8 = 0xfa;

/// The protocol, or `None` to wait for further bytes. `is_whole` says that these are the first
/// bytes of the connection.
pub(super) fn detect(
    side: Side,
    chunk: Chunk<'_>,
    is_whole: bool,
    hint: Option<Protocol>,
) -> Option<Protocol> {
    let otherwise = hint.unwrap_or(Protocol::Turns);
    let Chunk::Bytes(bytes) = chunk else {
        return Some(otherwise);
    };
    match side {
        Side::Server if is_mysql_greeting(bytes) => Some(Protocol::MySql),
        Side::Server if is_whole => Some(otherwise),
        // The capture began within a response; the next request tells more.
        Side::Server => None,
        Side::Client => Some(
            of_client(bytes)
                .or(hint)
                .or_else(|| within(bytes))
                .unwrap_or(Protocol::Turns),
        ),
    }
}

fn of_client(bytes: &[u8]) -> Option<Protocol> {
    if HTTP_METHODS.iter().any(|method| bytes.starts_with(method)) {
        return Some(Protocol::Http);
    }
    if is_resp(bytes) {
        return Some(Protocol::Resp);
    }
    if is_tls(Chunk::Bytes(bytes)) {
        return Some(Protocol::Turns);
    }
    is_postgres_startup(Side::Client, Chunk::Bytes(bytes)).then_some(Protocol::Postgres)
}

/// Whether the bytes are a TLS handshake record.
pub(super) fn is_tls(chunk: Chunk<'_>) -> bool {
    matches!(chunk, Chunk::Bytes([0x16, 3, 0..=4, ..]))
}

pub(super) fn is_postgres_startup(side: Side, chunk: Chunk<'_>) -> bool {
    let (Side::Client, Chunk::Bytes(bytes)) = (side, chunk) else {
        return false;
    };
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    word(0).is_some_and(|length| (8..LONGEST_STARTUP).contains(&length))
        && word(4).is_some_and(|code| POSTGRES_CODES.contains(&code))
}

/// An array of bulk strings: `*2\r\n$3\r\n`.
fn is_resp(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"*") else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..8).contains(&digits) && rest[digits..].starts_with(b"\r\n$")
}

fn is_mysql_greeting(bytes: &[u8]) -> bool {
    matches!(bytes, [_, _, 0, 0, MYSQL_PROTOCOL, version, ..] if version.is_ascii_graphic())
}

/// A request of a connection that existed when the capture began.
fn within(bytes: &[u8]) -> Option<Protocol> {
    let length = bytes.len() as u64;
    match bytes {
        [
            a,
            b,
            c,
            0,
            1..=LAST_MYSQL_COMMAND | MARIADB_BULK_EXECUTE,
            ..,
        ] if u64::from(u32::from_le_bytes([*a, *b, *c, 0])) + 4 == length => Some(Protocol::MySql),
        [tag, a, b, c, d, ..]
            if POSTGRES_TAGS.contains(tag)
                && (4..length).contains(&u64::from(u32::from_be_bytes([*a, *b, *c, *d]))) =>
        {
            Some(Protocol::Postgres)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_protocol() {
        let startup = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
        for (name, side, bytes, expected) in [
            (
                "GET",
                Side::Client,
                &b"GET / HTTP/1.1\r\n"[..],
                Some(Protocol::Http),
            ),
            (
                "array",
                Side::Client,
                b"*1\r\n$4\r\nPING\r\n",
                Some(Protocol::Resp),
            ),
            (
                "TLS",
                Side::Client,
                &[0x16, 3, 1, 0, 9],
                Some(Protocol::Turns),
            ),
            (
                "SSLRequest",
                Side::Client,
                &startup,
                Some(Protocol::Postgres),
            ),
            (
                "greeting",
                Side::Server,
                b"J\0\0\0\n8.0.36\0",
                Some(Protocol::MySql),
            ),
            (
                "banner",
                Side::Server,
                b"SSH-2.0-OpenSSH",
                Some(Protocol::Turns),
            ),
            ("letters", Side::Client, b"hello", Some(Protocol::Turns)),
        ] {
            assert_eq!(
                detect(side, Chunk::Bytes(bytes), true, None),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn requests_tell_the_protocol_of_an_existing_connection() {
        let find = |side, bytes| detect(side, Chunk::Bytes(bytes), false, None);
        assert_eq!(find(Side::Server, b"rows"), None);
        assert_eq!(
            find(Side::Client, b"\x03\0\0\0\x03ab"),
            Some(Protocol::MySql)
        );
        assert_eq!(
            find(Side::Client, b"Q\0\0\0\x07ab\0"),
            Some(Protocol::Postgres)
        );
        assert_eq!(
            find(Side::Client, b"\x09\0\0\0\x03ab"),
            Some(Protocol::Turns)
        );
    }
}
