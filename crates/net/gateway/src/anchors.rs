//! Anchors of the clients that the settings admit.

use std::io::{self, Write as _};
use std::mem::{self, Discriminant};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use saiga_anchor::{ConnectError, Opening};

use crate::seats::{Full, Seats};
use crate::service::{Left, locked};
use crate::settings::Serve;
use crate::worker::{Anchor, Anchors, Opened};

/// A `[[serve]]` with its connections, which all workers count.
#[derive(Clone)]
pub(crate) struct Admission {
    serve: Serve,
    seats: Option<Arc<Seats>>,
}

impl Admission {
    pub(crate) fn new(serve: &Serve) -> Self {
        Self {
            serve: serve.clone(),
            seats: Seats::of(serve),
        }
    }

    fn is_of(&self, server: SocketAddr) -> bool {
        let Serve { ports, address, .. } = &self.serve;
        ports.contains(&server.port()) && address.is_none_or(|address| address == server.ip())
    }
}

/// Why a client gets no answer.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Full(#[from] Full),
}

/// A reason without its details: each is reported once.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Connect(Discriminant<ConnectError>),
    Full(Full),
}

impl Silence {
    fn kind(&self) -> Kind {
        match self {
            Self::Connect(error) => Kind::Connect(mem::discriminant(error)),
            Self::Full(full) => Kind::Full(*full),
        }
    }
}

/// Opens anchors in the network namespace of its thread.
pub(crate) struct Admitted {
    anchors: saiga_anchor::Anchors,
    admissions: Vec<Admission>,
    left: Left,
    /// Reasons that were reported.
    told: Vec<Kind>,
}

impl Admitted {
    pub(crate) const fn new(
        anchors: saiga_anchor::Anchors,
        admissions: Vec<Admission>,
        left: Left,
    ) -> Self {
        Self {
            anchors,
            admissions,
            left,
            told: Vec::new(),
        }
    }

    /// Reports why clients get no answer, each kind of error once: clients can cause many.
    fn tell(&mut self, client: SocketAddr, error: &Silence) {
        let kind = error.kind();
        if !self.told.contains(&kind) {
            self.told.push(kind);
            // A closed stderr does not end the service.
            let _told = writeln!(
                io::stderr(),
                "saiga: client {client} gets no answer: {error}"
            );
        }
    }

    /// What admits a client to a served address. Firewalls do not see it: its anchor comes over
    /// loopback.
    fn admission(&self, client: IpAddr, server: SocketAddr) -> Option<&Admission> {
        let admission = self.admissions.iter().find(|one| one.is_of(server))?;
        admission.serve.clients.admits(client).then_some(admission)
    }

    /// Opens an anchor, if the `[[serve]]` has room for the connection.
    fn connect(
        &mut self,
        seats: Option<Arc<Seats>>,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Result<Opened, Silence> {
        let seat = seats.map(|seats| seats.take(client.ip())).transpose()?;
        let opening = self.anchors.connect(client, server);
        let path_mtu = self.anchors.path_mtu();
        let anchor = |stream| Anchor {
            stream,
            seat,
            path_mtu,
        };
        match opening {
            Ok(Opening::Established(stream)) => Ok(Opened::Established(anchor(stream))),
            Ok(Opening::Waiting(stream)) => Ok(Opened::Waiting(anchor(stream))),
            Ok(Opening::Refused) | Err(ConnectError::LinkLocal { .. }) => Ok(Opened::Refused),
            Ok(Opening::Conflict) => Ok(Opened::Ignored),
            Err(error) => Err(error.into()),
        }
    }
}

impl Anchors for Admitted {
    fn open(&mut self, client: SocketAddr, server: SocketAddr) -> Opened {
        let Some(admission) = self.admission(client.ip(), server) else {
            return Opened::Ignored;
        };
        if locked(&self.left).contains(&client.ip()) {
            return Opened::Ignored;
        }
        // The client repeats its SYN, and there may be descriptors and seats by then.
        self.connect(admission.seats.clone(), client, server)
            .unwrap_or_else(|error| {
                self.tell(client, &error);
                Opened::Ignored
            })
    }
}
