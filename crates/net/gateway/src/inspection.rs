//! The listeners for operators, control socket and metrics, and their threads.
//!
//! The listeners are opened before the gateway changes anything on the host, so that a path or port
//! in use is an error at the start; clients are answered once the workers run. All threads end, and
//! the control socket is removed, when the [`Inspection`] ends.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::net::SocketType;

use crate::control;
use crate::ending::{self, Guard};
use crate::metrics;
use crate::observer::Observer;
use crate::settings::{self, Settings};
use crate::socket::{OpenError, Owner, Place, Socket};

/// Why there are no listeners.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// The control socket cannot be made.
    #[error(transparent)]
    Control(#[from] OpenError),
    /// The address of the metrics cannot be used.
    #[error("cannot serve metrics at {address}, which `metrics.listen` names")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The error of the kernel.
        source: io::Error,
    },
    /// There is no descriptor or no thread left.
    #[error("cannot begin to answer clients of the control socket")]
    System(#[from] io::Error),
}

/// The open listeners.
#[derive(Debug)]
pub(crate) struct Listeners {
    socket: Socket,
    metrics: Option<TcpListener>,
    capture: settings::Capture,
}

/// The threads that answer clients. They end with this value; a capture is closed, and its client
/// told.
#[derive(Debug)]
pub(crate) struct Inspection {
    guard: Option<Guard>,
    threads: Vec<JoinHandle<()>>,
}

impl Listeners {
    /// Opens what the settings name.
    pub(crate) fn open(settings: &Settings, owner: Owner) -> Result<Self, InspectionError> {
        let metrics = settings.metrics.listen.map(|address| {
            metrics::listen(address).map_err(|source| InspectionError::Metrics { address, source })
        });
        let place = Place {
            key: "runtime.control",
            path: &settings.runtime.control,
            kind: SocketType::STREAM,
        };
        Ok(Self {
            metrics: metrics.transpose()?,
            socket: Socket::open(&place, owner)?,
            capture: settings.capture.clone(),
        })
    }

    /// Begins to answer clients.
    pub(crate) fn serve(self, observer: Observer) -> Result<Inspection, InspectionError> {
        let Self {
            socket,
            metrics,
            capture,
        } = self;
        let (guard, ending) = ending::pair()?;
        let observer = Arc::new(observer);
        let mut inspection = Inspection {
            guard: Some(guard),
            threads: Vec::new(),
        };
        if let Some(listener) = metrics {
            let (observer, ending) = (Arc::clone(&observer), ending.clone());
            inspection.spawn("gateway-metrics", move || {
                metrics::serve(&listener, &observer, &ending);
            })?;
        }
        inspection.spawn("gateway-control", move || {
            control::serve(&socket, &observer, &capture, &ending);
        })?;
        Ok(inspection)
    }
}

impl Inspection {
    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(run)?);
        Ok(())
    }
}

impl Drop for Inspection {
    fn drop(&mut self) {
        drop(self.guard.take());
        for thread in self.threads.drain(..) {
            // A fault of the program has ended the process already.
            let _ended = thread.join();
        }
    }
}
