//! The server's first packet, and what a client answers: what both can, and who it is.
//!
//! Protocol version 10, as MySQL has spoken it since 4.1 and MariaDB always.

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
/// MySQL sets it always; MariaDB leaves it out to say that it has more to say.
const MYSQL: u32 = 1;
/// Of MariaDB's own: columns are not described again while they stay the same.
const CACHED_COLUMNS: u32 = 1 << 4;
/// Likewise: one command has the values of many executions.
const BULK: u32 = 1 << 2;

/// What a server must have, or it is older than anything that runs TPC-C.
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
/// What is used where the server has it. `FOUND_ROWS` makes an UPDATE count the rows that it
/// found, as JDBC does. Statements are single ones: several in one text are refused.
const WANTED: u32 = FOUND_ROWS
    | LONG_FLAG
    | CONNECT_WITH_DB
    | LOCAL_FILES
    | TRANSACTIONS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | DEPRECATE_EOF;

const UTF8MB4_GENERAL_CI: u8 = 45;
/// The largest packet that we send: 16 MiB.
const LARGEST_PACKET: u32 = 1 << 24;

/// What a server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    /// By which passwords are changed on their way: 20 bytes.
    pub(super) salt: Vec<u8>,
    /// How the server would like passwords to be sent.
    pub(super) plugin: String,
    flags: u32,
    own_flags: u32,
}

/// What both sides can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Agreed {
    /// Columns end without a packet that says so, and rows end with an OK packet.
    pub(super) no_eof: bool,
    /// MariaDB's columns that are not described again.
    pub(super) cached_columns: bool,
    /// MariaDB's command that executes a statement many times.
    pub(super) bulk: bool,
}

/// Who logs in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    pub(super) database: &'a str,
    /// The server's public key may be taken from the server.
    pub(super) takes_public_key: bool,
    /// How the connection is encrypted, and the host that the certificate is for.
    pub(super) tls: Option<(&'a Tls, &'a str)>,
}

impl Greeting {
    /// `None` when it is none.
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

    /// Whether the server can go on by TLS.
    pub(super) fn offers_tls(&self) -> bool {
        self.flags & TLS != 0
    }

    /// Appends the beginning of the answer: what both sides can. Alone, it asks the server to go on
    /// by TLS, if `who` does.
    pub(super) fn put_head(&self, out: &mut Vec<u8>, who: &Who<'_>) {
        let by_tls = who.tls.map_or(0, |_| TLS);
        let flags = self.flags & (NEEDED | WANTED | MYSQL | by_tls);
        out.extend(flags.to_le_bytes());
        out.extend(LARGEST_PACKET.to_le_bytes());
        out.push(UTF8MB4_GENERAL_CI);
        out.extend([0; 19]);
        out.extend((self.own_flags & (CACHED_COLUMNS | BULK)).to_le_bytes());
    }

    /// Appends the answer, with what stands for the password.
    pub(super) fn answer(&self, out: &mut Vec<u8>, who: &Who<'_>, plugin: &str, proof: &[u8]) {
        self.put_head(out, who);
        out.extend(who.user.as_bytes());
        out.push(0);
        put_text(out, proof); // At most 32 bytes: its length is one byte.
        out.extend(who.database.as_bytes());
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
