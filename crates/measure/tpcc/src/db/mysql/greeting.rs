//! The server's first packet (`HandshakeV10`) and the client's answer (`HandshakeResponse41`). The
//! answer contains the capabilities of both sides, and the user's name and proof.
//!
//! Supports protocol version 10 as in MySQL since 4.1, and in MariaDB.

use super::parts::{Parts, put_text};
use crate::db::tls::Tls;

const FOUND_ROWS: u32 = 1 << 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const DEPRECATE_EOF: u32 = 1 << 24;
/// Always set by MySQL. MariaDB leaves it out if `own_flags` follow.
const MYSQL: u32 = 1;
/// A flag of MariaDB: columns are not described again while they stay the same.
const CACHED_COLUMNS: u32 = 1 << 4;
/// A flag of MariaDB: one command can have the values of many executions.
const BULK: u32 = 1 << 2;

/// Capabilities that a server must have. All supported servers have them.
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
/// Capabilities that are used if the server has them. With `FOUND_ROWS`, an UPDATE counts the rows
/// that it found, as with JDBC. `MULTI_STATEMENTS` is absent, so the server refuses a text with
/// several statements.
const WANTED: u32 = FOUND_ROWS
    | LONG_FLAG
    | CONNECT_WITH_DB
    | LOCAL_FILES
    | TRANSACTIONS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | DEPRECATE_EOF;

const UTF8MB4_GENERAL_CI: u8 = 45;
/// The largest packet that the client sends: 16 MiB.
const LARGEST_PACKET: u32 = 1 << 24;

/// The first packet of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    /// Random bytes, normally 20, that are hashed with the password.
    pub(super) salt: Vec<u8>,
    /// The authentication plugin that the server prefers.
    pub(super) plugin: String,
    /// Capabilities of the server.
    flags: u32,
    /// Capabilities that only MariaDB has; 0 for MySQL.
    own_flags: u32,
}

/// Capabilities that both sides have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Agreed {
    /// No EOF packet follows the columns, and an OK packet follows the rows (`DEPRECATE_EOF`).
    pub(super) no_eof: bool,
    /// MariaDB does not describe columns again while they stay the same.
    pub(super) cached_columns: bool,
    /// MariaDB has the command that executes a statement many times.
    pub(super) bulk: bool,
}

/// The user that logs in, and the conditions of the log-in.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoginUser<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    pub(super) database: &'a str,
    /// Whether the client may request the server's public key from the server itself.
    pub(super) takes_public_key: bool,
    /// The settings of TLS and the host name that the certificate must have; `None` without TLS.
    pub(super) tls: Option<(&'a Tls, &'a str)>,
}

impl Greeting {
    /// Parses the first packet. Returns `None` if it is not a greeting of protocol version 10, or
    /// if the server lacks a needed capability.
    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let mut parts = Parts(payload);
        let version = parts.u8().filter(|version| *version == 10)?;
        debug_assert_eq!(version, 10);
        let _server_version = parts.until_nul();
        let _connection = parts.u32()?;
        let mut salt = parts.bytes(8)?.to_vec();
        parts.u8()?;
        let low = parts.u16()?;
        let _charset_and_status = parts.bytes(3)?;
        let high = parts.u16()?;
        let flags = u32::from(low) | u32::from(high) << 16;
        let salt_length = usize::from(parts.u8()?);
        let _reserved = parts.bytes(6)?;
        let own_flags = parts.u32()?;
        let rest = parts.bytes(salt_length.saturating_sub(8).max(13))?;
        salt.extend(rest.strip_suffix(&[0]).unwrap_or(rest));
        let plugin = String::from_utf8_lossy(parts.until_nul()).into_owned();
        let needed = flags & NEEDED == NEEDED;
        needed.then_some(Self {
            salt,
            plugin,
            flags,
            own_flags: if flags & MYSQL == 0 { own_flags } else { 0 },
        })
    }

    /// Whether the server supports TLS on this connection.
    pub(super) fn offers_tls(&self) -> bool {
        self.flags & TLS != 0
    }

    /// Appends the beginning of the answer: the capabilities that both sides have. If `login` uses
    /// TLS, this beginning alone is the request to start TLS (`SSLRequest`).
    pub(super) fn put_head(&self, out: &mut Vec<u8>, login: &LoginUser<'_>) {
        let by_tls = login.tls.map_or(0, |_| TLS);
        let flags = self.flags & (NEEDED | WANTED | MYSQL | by_tls);
        out.extend(flags.to_le_bytes());
        out.extend(LARGEST_PACKET.to_le_bytes());
        out.push(UTF8MB4_GENERAL_CI);
        out.extend([0; 19]);
        out.extend((self.own_flags & (CACHED_COLUMNS | BULK)).to_le_bytes());
    }

    /// Appends the answer. `proof` is what `plugin` sends in place of the password.
    pub(super) fn answer(
        &self,
        out: &mut Vec<u8>,
        login: &LoginUser<'_>,
        plugin: &str,
        proof: &[u8],
    ) {
        self.put_head(out, login);
        out.extend(login.user.as_bytes());
        out.push(0);
        put_text(out, proof); // At most 32 bytes, so the length takes one byte.
        out.extend(login.database.as_bytes());
        out.push(0);
        out.extend(plugin.as_bytes());
        out.push(0);
    }

    pub(super) fn agreed(&self) -> Agreed {
        Agreed {
            no_eof: self.flags & DEPRECATE_EOF != 0,
            cached_columns: self.own_flags & CACHED_COLUMNS != 0,
            bulk: self.own_flags & BULK != 0,
        }
    }
}
