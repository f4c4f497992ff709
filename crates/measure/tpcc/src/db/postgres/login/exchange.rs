//! Authentication, without a connection: the server's authentication requests and the answers of
//! the client.
//!
//! Codes of requests: PostgreSQL's "Authentication" messages. openGauss uses the codes 10, 11 and
//! 13 for its own methods (SHA256, MD5_SHA256, SM3); the format of the request distinguishes them.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::gauss::{self, Hash};
use crate::db::ConnectError;
use crate::db::postgres::failure::Place;
use crate::props::Engine;

/// The state of one authentication.
pub(super) struct Exchange<'a> {
    dialect: Engine,
    user: &'a str,
    password: &'a str,
    state: State,
}

enum State {
    /// The server has not requested anything yet.
    Fresh,
    /// The answer was sent; the server checks it.
    Answered,
    /// SCRAM: the client's nonce was sent.
    ScramBegun(Box<ScramSha256>),
    /// SCRAM: the client's proof was sent, and the server's proof must follow.
    ScramProven(Box<ScramSha256>),
    /// The server has accepted the user.
    Admitted,
}

/// The next action of the log-in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Send(BytesMut),
    Wait,
}

/// The reason why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server is openGauss behind a PostgreSQL URL. The log-in must be repeated as openGauss.
    IsOpenGauss,
    /// The authentication method is not supported.
    Unsupported(String),
    /// The request is malformed or not allowed in this state.
    Protocol(String),
    /// The server failed to prove that it knows the password, so it may be the wrong server.
    UnprovenServer,
}

impl Refusal {
    /// Converts the refusal into an error of the log-in.
    pub(super) fn of_login(self, place: &Place<'_>) -> ConnectError {
        let address = place.address.to_owned();
        let engine = place.engine;
        let instead = "let its pg_hba.conf say scram-sha-256 or md5 (openGauss: sha256), and set the password \
                       anew";
        match self {
            Self::Unsupported(what) => ConnectError::Unsupported {
                engine,
                address,
                what,
                instead: instead.to_owned(),
            },
            Self::IsOpenGauss => ConnectError::Unsupported {
                engine,
                address,
                what: "openGauss's log-in".to_owned(),
                instead: "write the URL as jdbc:opengauss://".to_owned(),
            },
            Self::Protocol(what) => ConnectError::Unreachable {
                engine,
                address,
                error: std::io::Error::new(std::io::ErrorKind::InvalidData, what),
            },
            Self::UnprovenServer => ConnectError::Login {
                engine,
                address,
                user: place.user.to_owned(),
                said: "the server did not prove that it knows the password".to_owned(),
            },
        }
    }
}

impl<'a> Exchange<'a> {
    pub(super) fn new(dialect: Engine, user: &'a str, password: &'a str) -> Self {
        Self {
            dialect,
            user,
            password,
            state: State::Fresh,
        }
    }

    /// Whether the server has accepted the user.
    pub(super) fn is_admitted(&self) -> bool {
        matches!(self.state, State::Admitted)
    }

    /// Answers a request. SCRAM's messages must come in order; any other request may come only
    /// once.
    pub(super) fn on_request(&mut self, code: i32, data: &[u8]) -> Result<Step, Refusal> {
        let state = std::mem::replace(&mut self.state, State::Answered);
        match (state, code) {
            (State::Fresh | State::Answered, 0) => {
                self.state = State::Admitted;
                Ok(Step::Wait)
            }
            (State::Fresh, 3) => message(self.password),
            (State::Fresh, 5) => {
                let salt = data.try_into().map_err(|_| malformed(code))?;
                message(&md5_hash(
                    self.user.as_bytes(),
                    self.password.as_bytes(),
                    salt,
                ))
            }
            (State::Fresh, 10 | 13) if gauss::is_own(data) => self.prove(code, data),
            (State::Fresh, 10) => self.begin_scram(data),
            (State::Fresh, 11) => {
                let proof = gauss::md5_proof(self.password, data);
                message(&proof.ok_or_else(|| malformed(code))?)
            }
            (State::ScramBegun(mut scram), 11) => {
                scram.update(data).map_err(|_| malformed(code))?;
                let mut out = BytesMut::new();
                let written = frontend::sasl_response(scram.message(), &mut out);
                written.map_err(|_| malformed(code))?;
                self.state = State::ScramProven(scram);
                Ok(Step::Send(out))
            }
            (State::ScramProven(mut scram), 12) => {
                scram.finish(data).map_err(|_| Refusal::UnprovenServer)?;
                Ok(Step::Wait)
            }
            (State::Fresh, other) => Err(unsupported(other)),
            (_, other) => Err(malformed(other)),
        }
    }

    /// Answers a request of openGauss's own methods.
    fn prove(&mut self, code: i32, data: &[u8]) -> Result<Step, Refusal> {
        if self.dialect != Engine::OpenGauss {
            return Err(Refusal::IsOpenGauss);
        }
        let hash = if code == 13 { Hash::Sm3 } else { Hash::Sha256 };
        let request = gauss::request(data, hash).ok_or_else(|| malformed(code))?;
        let proof = gauss::proof(self.password, &request, hash);
        message(&proof.ok_or_else(|| malformed(code))?)
    }

    fn begin_scram(&mut self, mechanisms: &[u8]) -> Result<Step, Refusal> {
        let mut offered = mechanisms.split(|byte| *byte == 0);
        if !offered.any(|one| one == SCRAM_SHA_256.as_bytes()) {
            let names = String::from_utf8_lossy(mechanisms).replace('\0', " ");
            let what = format!("a log-in by {}", names.trim());
            return Err(Refusal::Unsupported(what));
        }
        // No channel binding: openGauss and PostgreSQL before 11 do not support it.
        let binding = ChannelBinding::unsupported();
        let scram = ScramSha256::new(self.password.as_bytes(), binding);
        let mut out = BytesMut::new();
        let written = frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out);
        written.map_err(|_| malformed(10))?;
        self.state = State::ScramBegun(Box::new(scram));
        Ok(Step::Send(out))
    }
}

/// A message with the password or a proof.
fn message(password: &str) -> Result<Step, Refusal> {
    let mut out = BytesMut::new();
    let written = frontend::password_message(password.as_bytes(), &mut out);
    written.map_err(|_| Refusal::Protocol("the password contains a zero byte".to_owned()))?;
    Ok(Step::Send(out))
}

fn malformed(code: i32) -> Refusal {
    Refusal::Protocol(format!(
        "the program there does not follow PostgreSQL's protocol (authentication request {code})"
    ))
}

fn unsupported(code: i32) -> Refusal {
    let what = match code {
        2 => "a log-in by Kerberos".to_owned(),
        7 | 8 => "a log-in by GSSAPI".to_owned(),
        9 => "a log-in by SSPI".to_owned(),
        14 => "a log-in by an IAM token".to_owned(),
        other => format!("a log-in of kind {other}"),
    };
    Refusal::Unsupported(what)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
