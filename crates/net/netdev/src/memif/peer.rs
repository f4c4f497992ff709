//! A peer that is connected to the control socket, before its link is up and afterwards.

use std::io;
use std::os::fd::OwnedFd;

use super::client::Client;
use super::link::Link;
use super::message::Message;
use super::server::Server;
use super::socket::{Received, Socket};

/// A rule of the protocol that the peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer broke the protocol: {0}")]
pub(super) struct Breach(pub(super) &'static str);

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ending {
    /// The peer broke a rule.
    #[error(transparent)]
    Breach(#[from] Breach),
    /// The peer has closed the socket.
    #[error("the peer has closed the connection")]
    Closed,
    /// The peer does not want the connection.
    #[error("the peer ends the connection: {0}")]
    Told(String),
    /// A system call failed.
    #[error("the connection failed: {0}")]
    System(#[from] io::Error),
}

/// A connected peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) socket: Socket,
    pub(super) stage: Stage,
}

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Stage {
    /// This end is the server.
    Serving(Server),
    /// This end is the client.
    Asking(Client),
    /// Frames can move.
    Up(Box<Link>),
}

/// What a message has led to.
pub(super) enum Answer {
    Nothing,
    Send(Message),
    /// Sends a message, after which the link is up.
    Up(Box<Link>, Option<Message>),
}

impl Peer {
    /// Handles the messages that wait. Returns whether the link has come up.
    pub(super) fn on_readable(&mut self) -> Result<bool, Ending> {
        let mut has_come_up = false;
        loop {
            let (message, descriptor) = match self.socket.receive()? {
                Received::Nothing => return Ok(has_come_up),
                Received::Closed => return Err(Ending::Closed),
                Received::Garbage => return Err(Breach("it sent what is not a message").into()),
                Received::Message(Message::Disconnect(reason), _) => {
                    return Err(Ending::Told(reason));
                }
                Received::Message(message, descriptor) => (message, descriptor),
            };
            has_come_up |= self.on_message(message, descriptor)?;
        }
    }

    fn on_message(&mut self, message: Message, beside: Option<OwnedFd>) -> Result<bool, Ending> {
        let answer = match &mut self.stage {
            Stage::Serving(server) => server.on_message(message, beside)?,
            Stage::Asking(client) => client.on_message(&message, &self.socket)?,
            Stage::Up(_) => return Err(Breach("it sent a message over a connected link").into()),
        };
        let (link, message) = match answer {
            Answer::Nothing => (None, None),
            Answer::Send(message) => (None, Some(message)),
            Answer::Up(link, message) => (Some(link), message),
        };
        if let Some(message) = message {
            self.socket.send(&message, None)?;
        }
        let Some(link) = link else {
            return Ok(false);
        };
        self.stage = Stage::Up(link);
        Ok(true)
    }

    /// Tells the peer why its connection ends, if it still listens.
    pub(super) fn tell(&self, ending: &Ending) {
        let _told = self
            .socket
            .send(&Message::Disconnect(ending.to_string()), None);
    }

    pub(super) fn link(&mut self) -> Option<&mut Link> {
        match &mut self.stage {
            Stage::Up(link) => Some(link),
            Stage::Serving(_) | Stage::Asking(_) => None,
        }
    }
}
