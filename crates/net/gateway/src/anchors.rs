//! Anchors of the clients that the settings admit.

use std::io::{self, Write as _};
use std::mem::{self, Discriminant};
use std::net::{IpAddr, SocketAddr};

use saiga_anchor::{ConnectError, Opening};

use crate::service::{Left, locked};
use crate::settings::Serve;
use crate::worker::{Anchors, Opened};

/// Opens anchors in the network namespace of its thread.
pub(crate) struct Admitted {
    anchors: saiga_anchor::Anchors,
    serve: Vec<Serve>,
    left: Left,
    /// Kinds of errors that were reported.
    told: Vec<Discriminant<ConnectError>>,
}

impl Admitted {
    pub(crate) const fn new(anchors: saiga_anchor::Anchors, serve: Vec<Serve>, left: Left) -> Self {
        Self {
            anchors,
            serve,
            left,
            told: Vec::new(),
        }
    }

    /// Reports why clients get no answer, each kind of error once: clients can cause many.
    fn tell(&mut self, client: SocketAddr, error: &ConnectError) {
        let kind = mem::discriminant(error);
        if !self.told.contains(&kind) {
            self.told.push(kind);
            // A closed stderr does not end the service.
            let _told = writeln!(
                io::stderr(),
                "saiga: client {client} gets no answer: {error}"
            );
        }
    }

    /// Whether a client may connect to a served address. Firewalls do not see it: its anchor comes
    /// over loopback.
    fn admits(&self, client: IpAddr, server: SocketAddr) -> bool {
        let is_served = |serve: &&Serve| {
            serve.ports.contains(&server.port())
                && serve.address.is_none_or(|address| address == server.ip())
        };
        let serve = self.serve.iter().find(is_served);
        serve.is_some_and(|serve| serve.clients.admits(client))
    }
}

impl Anchors for Admitted {
    fn open(&mut self, client: SocketAddr, server: SocketAddr) -> Opened {
        if !self.admits(client.ip(), server) || locked(&self.left).contains(&client.ip()) {
            return Opened::Ignored;
        }
        match self.anchors.connect(client, server) {
            Ok(Opening::Established(anchor)) => Opened::Established(anchor),
            Ok(Opening::Waiting(anchor)) => Opened::Waiting(anchor),
            Ok(Opening::Refused) | Err(ConnectError::LinkLocal { .. }) => Opened::Refused,
            // The client repeats its SYN, and there may be descriptors by then.
            Err(error) => {
                self.tell(client, &error);
                Opened::Ignored
            }
            Ok(Opening::Conflict) => Opened::Ignored,
        }
    }
}
