//! Logging in: the greeting, TLS where it is asked for, then a dialogue about the password.
//!
//! Passwords go by `mysql_native_password` or `caching_sha2_password`. The latter sends a password
//! that the server has not seen yet as it is by TLS or a Unix socket, else by the server's public
//! key, which is taken from the server unless that is forbidden (`allowPublicKeyRetrieval=false`).
//! Deliberately absent: every other plugin, by its name.

use super::fault::{Fault, ServerError};
use super::greeting::{Agreed, Greeting, Who};
use super::parts::Parts;
use super::public_key::PublicKey;
use super::scramble;
use super::wire::Wire;
use crate::db::tls::TlsError;

/// Why the dialogue ended.
#[derive(Debug)]
pub(super) enum LoginFault {
    /// The server, or the connection to it.
    Fault(Fault),
    /// The server refuses the user or the password, and could have gone on by TLS, which was not
    /// asked for.
    InPlainText(ServerError),
    /// It wants a password in a way that we do not have.
    Plugin(String),
    /// It wants the password by its public key, which is not to be taken from it.
    PublicKey,
    /// It is too old, or something else than MySQL.
    NoGreeting,
    /// The connection cannot be encrypted.
    Tls(TlsError),
}

impl From<Fault> for LoginFault {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The server does not know the user, or not so: by this password, from this host, in plain text.
const ACCESS_DENIED: u16 = 1045;
/// Turns of the dialogue; a server that wants more is not sane.
const MOST_TURNS: usize = 10;

/// Logs in on a fresh connection. What both can, and the state of the session.
pub(super) fn log_in(wire: &mut Wire, who: &Who<'_>) -> Result<(Agreed, u16), LoginFault> {
    let first = wire.packet()?;
    if first.first() == Some(&0xff) {
        return Err(Fault::of_error(first).into());
    }
    let greeting = Greeting::parse(first).ok_or(LoginFault::NoGreeting)?;
    match dialogue(wire, who, &greeting) {
        Err(LoginFault::Fault(Fault::Server(error)))
            if error.code == ACCESS_DENIED && greeting.offers_tls() && !wire.is_private() =>
        {
            Err(LoginFault::InPlainText(error))
        }
        ended => ended,
    }
}

/// The same behind the greeting.
fn dialogue(
    wire: &mut Wire,
    who: &Who<'_>,
    greeting: &Greeting,
) -> Result<(Agreed, u16), LoginFault> {
    if let Some((tls, host)) = who.tls {
        if !greeting.offers_tls() {
            return Err(LoginFault::Tls(TlsError::NotOffered));
        }
        greeting.put_head(wire.reply(), who);
        wire.send()?;
        wire.secure(tls, host).map_err(LoginFault::Tls)?;
    }
    let is_private = wire.is_private();
    let mut method = Method::named(&greeting.plugin).unwrap_or(Method::Native);
    let mut salt = greeting.salt.clone();
    let proof = method.proof(who.password, &salt);
    greeting.answer(wire.reply(), who, method.name(), &proof);
    wire.send()?;
    for _ in 0..MOST_TURNS {
        let packet = wire.packet()?;
        match packet {
            [0x00, ..] => {
                let status = status(packet).ok_or(Fault::Answer("no end of the log-in"))?;
                return Ok((greeting.agreed(), status));
            }
            [0xff, ..] => return Err(Fault::of_error(packet).into()),
            [0xfe] => return Err(LoginFault::Plugin("mysql_old_password".to_owned())),
            [0xfe, switch @ ..] => {
                let mut parts = Parts(switch);
                let plugin = String::from_utf8_lossy(parts.until_nul()).into_owned();
                salt = parts.0.strip_suffix(&[0]).unwrap_or(parts.0).to_vec();
                method = Method::named(&plugin).ok_or(LoginFault::Plugin(plugin))?;
                let proof = method.proof(who.password, &salt);
                wire.reply().extend(proof);
                wire.send()?;
            }
            [0x01, 0x03] if method == Method::CachingSha2 => {} // The server knows us: OK follows.
            [0x01, 0x04] if method == Method::CachingSha2 && is_private => {
                let reply = wire.reply();
                reply.extend(who.password.as_bytes());
                reply.push(0);
                wire.send()?;
            }
            [0x01, 0x04] if method == Method::CachingSha2 && !who.takes_public_key => {
                return Err(LoginFault::PublicKey);
            }
            [0x01, 0x04] if method == Method::CachingSha2 => send_password(wire, who, &salt)?,
            _ => return Err(Fault::Answer("no step of a log-in").into()),
        }
    }
    Err(Fault::Answer("a log-in without end").into())
}

/// An OK packet's state of the session.
fn status(ok: &[u8]) -> Option<u16> {
    let mut parts = Parts(ok.get(1..)?);
    parts.number()?;
    parts.number()?;
    parts.u16()
}

/// The server has not seen this user since its start, and needs the password itself.
fn send_password(wire: &mut Wire, who: &Who<'_>, salt: &[u8]) -> Result<(), Fault> {
    const ASK_FOR_KEY: u8 = 2;
    wire.reply().push(ASK_FOR_KEY);
    wire.send()?;
    let packet = wire.packet()?;
    let key = match packet {
        [0x01, pem @ ..] => PublicKey::of_pem(pem),
        [0xff, ..] => return Err(Fault::of_error(packet)),
        _ => None,
    };
    let key = key.ok_or(Fault::Answer("no public key"))?;
    let mut seed = [0; 20];
    getrandom::fill(&mut seed).map_err(|error| Fault::Io(std::io::Error::other(error)))?;
    let hidden = scramble::masked(who.password.as_bytes(), salt);
    let encrypted = key.encrypt(&hidden, seed);
    let encrypted = encrypted.ok_or(Fault::Answer("a public key too short for the password"))?;
    wire.reply().extend(encrypted);
    wire.send()
}

/// A way to send a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
}

impl Method {
    fn named(plugin: &str) -> Option<Self> {
        [Self::Native, Self::CachingSha2]
            .into_iter()
            .find(|method| method.name() == plugin)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    fn proof(self, password: &str, salt: &[u8]) -> Vec<u8> {
        match self {
            Self::Native => scramble::native(password.as_bytes(), salt),
            Self::CachingSha2 => scramble::caching_sha2(password.as_bytes(), salt),
        }
    }
}
