//! The gateway that a verb asks.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use saiga_gateway::control::{Answer, Client, Connection, Question, Status};
use saiga_gateway::file::FileError;
use saiga_gateway::settings::{FILE, Runtime, Settings};

/// Options that name the control socket.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Settings of the gateway [default: /etc/saiga/gateway.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    config: Option<PathBuf>,
    /// Control socket of the gateway, as `runtime.control` names it
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Target {
    /// The control socket: the one named, that of the settings, or the usual one.
    pub(super) fn socket(&self) -> anyhow::Result<PathBuf> {
        if let Some(control) = &self.control {
            return Ok(control.clone());
        }
        let file = self.config.as_deref().unwrap_or(Path::new(FILE));
        match Settings::read(file) {
            Ok(settings) => Ok(settings.runtime.control),
            Err(FileError::Unreadable { source, .. })
                if self.config.is_none() && source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(Runtime::default().control)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The state of the gateway.
pub(super) fn status(socket: &Path) -> anyhow::Result<Status> {
    let Answer::Status(status) = Client::ask(socket, &Question::Status)?.answer()? else {
        bail!("the gateway has given another answer");
    };
    Ok(status)
}

/// All connections of the gateway.
pub(super) fn connections(socket: &Path, status: &Status) -> anyhow::Result<Vec<Connection>> {
    let mut all = Vec::new();
    for worker in status.workers.iter().map(|one| one.worker) {
        let mut next = Some(0);
        while let Some(from) = next {
            let question = Question::Connections { worker, from };
            let Answer::Connections(part) = Client::ask(socket, &question)?.answer()? else {
                bail!("the gateway has given another answer");
            };
            all.extend(part.connections);
            next = part.next;
        }
    }
    Ok(all)
}
