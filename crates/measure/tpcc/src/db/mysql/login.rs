//! The log-in: the greeting, TLS if requested, then the authentication.
//!
//! Supports `mysql_native_password` and `caching_sha2_password`. The latter needs the password
//! itself if the server has not cached it. With TLS or on a Unix socket, the password is sent as it
//! is. Otherwise it is encrypted with the server's public key, which the server itself sends unless
//! `allowPublicKeyRetrieval=false` forbids that. Deliberately absent: all other plugins; the error
//! contains their name.

use super::fault::{Fault, ServerError};
use super::greeting::{Agreed, Greeting, LoginUser};
use super::parts::Parts;
use super::public_key::PublicKey;
use super::scramble;
use super::wire::Wire;
use crate::db::tls::TlsError;

/// The reason why a log-in failed.
#[derive(Debug)]
pub(super) enum LoginFault {
    /// An error of the server or of the connection.
    Fault(Fault),
    /// The server rejects the user or the password. It supports TLS, but TLS was not requested, so
    /// the user may require TLS.
    InPlainText(ServerError),
    /// The server requires an authentication plugin that is not supported.
    Plugin(String),
    /// The password needs the server's public key, and its retrieval is forbidden.
    PublicKey,
    /// The server is not MySQL or MariaDB, or its version is too old.
    NoGreeting,
    /// The connection cannot be encrypted.
    Tls(TlsError),
}

impl From<Fault> for LoginFault {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Access denied: wrong user or password, a host that is not allowed, or TLS is required.
const ACCESS_DENIED: u16 = 1045;
/// Maximum number of authentication packets of one log-in. More indicate a faulty server.
const MOST_TURNS: usize = 10;

/// Logs in on a new connection. Returns the common capabilities and the status flags.
pub(super) fn log_in(wire: &mut Wire, login: &LoginUser<'_>) -> Result<(Agreed, u16), LoginFault> {
    let first = wire.packet()?;
    if first.first() == Some(&0xff) {
        return Err(Fault::of_error(first).into());
    }
    let greeting = Greeting::parse(first).ok_or(LoginFault::NoGreeting)?;
    match dialogue(wire, login, &greeting) {
        Err(LoginFault::Fault(Fault::Server(error)))
            if error.code == ACCESS_DENIED && greeting.offers_tls() && !wire.is_private() =>
        {
            Err(LoginFault::InPlainText(error))
        }
        ended => ended,
    }
}

/// The log-in after the greeting.
fn dialogue(
    wire: &mut Wire,
    login: &LoginUser<'_>,
    greeting: &Greeting,
) -> Result<(Agreed, u16), LoginFault> {
    if let Some((tls, host)) = login.tls {
        if !greeting.offers_tls() {
            return Err(LoginFault::Tls(TlsError::NotOffered));
        }
        greeting.put_head(wire.reply(), login);
        wire.send()?;
        wire.secure(tls, host).map_err(LoginFault::Tls)?;
    }
    let is_private = wire.is_private();
    let mut method = Method::named(&greeting.plugin).unwrap_or(Method::Native);
    let mut salt = greeting.salt.clone();
    let proof = method.proof(login.password, &salt);
    greeting.answer(wire.reply(), login, method.name(), &proof);
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
                let proof = method.proof(login.password, &salt);
                wire.reply().extend(proof);
                wire.send()?;
            }
            [0x01, 0x03] if method == Method::CachingSha2 => {} // Found in the cache; OK follows.
            [0x01, 0x04] if method == Method::CachingSha2 && is_private => {
                let reply = wire.reply();
                reply.extend(login.password.as_bytes());
                reply.push(0);
                wire.send()?;
            }
            [0x01, 0x04] if method == Method::CachingSha2 && !login.takes_public_key => {
                return Err(LoginFault::PublicKey);
            }
            [0x01, 0x04] if method == Method::CachingSha2 => send_password(wire, login, &salt)?,
            _ => return Err(Fault::Answer("no step of a log-in").into()),
        }
    }
    Err(Fault::Answer("a log-in without end").into())
}

/// The status flags in an OK packet.
fn status(ok: &[u8]) -> Option<u16> {
    let mut parts = Parts(ok.get(1..)?);
    parts.number()?;
    parts.number()?;
    parts.u16()
}

/// Sends the password encrypted with the server's key, because the server has not cached it.
fn send_password(wire: &mut Wire, login: &LoginUser<'_>, salt: &[u8]) -> Result<(), Fault> {
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
    let hidden = scramble::masked(login.password.as_bytes(), salt);
    let encrypted = key.encrypt(&hidden, seed);
    let encrypted = encrypted.ok_or(Fault::Answer("a public key too short for the password"))?;
    wire.reply().extend(encrypted);
    wire.send()
}

/// An authentication plugin.
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
