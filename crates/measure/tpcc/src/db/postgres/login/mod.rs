//! The log-in: from an address to a session that is ready for queries, with TLS if requested.
//!
//! The start-up packet and messages follow PostgreSQL's "Start-up"; [`exchange`] has the
//! authentication. openGauss is addressed with its protocol version 3.51, because only then it
//! states how it has hashed the password. If a server behind a `jdbc:postgresql:` URL is openGauss,
//! the log-in is repeated with that version.

mod exchange;
mod gauss;

use bytes::BytesMut;
use postgres_protocol::message::backend as tag;
use postgres_protocol::message::frontend;

use self::exchange::{Exchange, Refusal, Step};
use super::failure::{Failure, Place};
use super::frame::take;
use super::link::{Broken, Link, login_limit};
use crate::db::ConnectError;
use crate::db::options::Options;
use crate::db::tls::TlsError;
use crate::props::{Engine, Password, Url};

/// Version 3.51 of the protocol, used by openGauss.
const GAUSS_VERSION: [u8; 4] = [0, 3, 0, 51];
/// The server does not support the minor version and continues with another one.
const NEGOTIATE_TAG: u8 = b'v';

/// The reason why a log-in failed.
enum LoginError {
    Broken(Broken),
    Failed(Failure),
    Refused(Refusal),
    Tls(TlsError),
}

impl From<Broken> for LoginError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Connects and logs in. The deadline of the log-in still applies to the caller's next queries.
pub(super) fn enter(
    url: &Url,
    user: &str,
    password: &Password,
    options: &Options,
) -> Result<Link, ConnectError> {
    let address = options.address(url);
    let limit = login_limit(options);
    let attempt = |dialect| {
        let mut link = Link::open(url, options).map_err(Broken::from)?;
        if let Some(tls) = &options.tls {
            link.secure(tls, &url.host).map_err(LoginError::Tls)?;
        }
        log_in(&mut link, dialect, url, user, password).map(|()| link)
    };
    let mut entered = attempt(url.engine);
    if let Err(LoginError::Refused(Refusal::IsOpenGauss)) = entered {
        entered = attempt(Engine::OpenGauss);
    }
    let place = Place {
        engine: url.engine,
        address: &address,
        user,
        database: &url.database,
    };
    match entered {
        Ok(link) => Ok(link),
        Err(LoginError::Tls(error)) => Err(error.of_login(url.engine, &address, limit)),
        Err(LoginError::Broken(Broken::Silent { .. })) => Err(ConnectError::Stuck {
            engine: url.engine,
            address,
            step: "the log-in",
            limit,
        }),
        Err(LoginError::Broken(broken)) => Err(ConnectError::Unreachable {
            engine: url.engine,
            address,
            error: broken.into(),
        }),
        Err(LoginError::Failed(failure)) => Err(failure.of_login(&place)),
        Err(LoginError::Refused(refusal)) => Err(refusal.of_login(&place)),
    }
}

/// Sends the start-up packet, answers the authentication and waits until the server is ready.
fn log_in(
    link: &mut Link,
    dialect: Engine,
    url: &Url,
    user: &str,
    password: &Password,
) -> Result<(), LoginError> {
    let mut exchange = Exchange::new(dialect, user, password.reveal());
    let start = start_up(dialect, user, &url.database)?;
    link.send(&start)?;
    loop {
        let frame = link.receive()?;
        match frame.tag {
            tag::AUTHENTICATION_TAG => {
                let mut data = frame.body;
                let code = take(&mut data).map(i32::from_be_bytes);
                let code = code.ok_or_else(|| Broken::protocol("a request without a kind"))?;
                match exchange
                    .on_request(code, data)
                    .map_err(LoginError::Refused)?
                {
                    Step::Send(message) => link.send(&message)?,
                    Step::Wait => {}
                }
            }
            tag::ERROR_RESPONSE_TAG => return Err(LoginError::Failed(Failure::of(frame.body))),
            tag::READY_FOR_QUERY_TAG if exchange.is_admitted() => return Ok(()),
            tag::BACKEND_KEY_DATA_TAG
            | tag::PARAMETER_STATUS_TAG
            | tag::NOTICE_RESPONSE_TAG
            | NEGOTIATE_TAG => {}
            other => {
                let what = format!("a message {:?} amid a log-in", char::from(other));
                return Err(Broken::protocol(what).into());
            }
        }
    }
}

/// The start-up packet. It selects UTF-8 for text, and dates such as `2026-11-20 17:00:59`.
fn start_up(dialect: Engine, user: &str, database: &str) -> Result<BytesMut, Broken> {
    let mut packet = BytesMut::new();
    let parameters = [
        ("user", user),
        ("database", database),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("application_name", "saiga"),
    ];
    frontend::startup_message(parameters, &mut packet)?;
    if dialect == Engine::OpenGauss {
        packet[4..8].copy_from_slice(&GAUSS_VERSION);
    }
    Ok(packet)
}
