//! The client's end of the control socket.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::descriptor;
use super::protocol::{Answer, Question};

/// Most bytes of an answer: a thousand connections have a part of this.
const MOST_BYTES: u64 = 4 << 20;
/// How long to wait for an answer, except that of a capture. The gateway waits up to two seconds
/// for each of its workers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No gateway listens.
    #[error(
        "no gateway answers at {}: start one with `saiga gateway up`, or name its control socket \
         with --config or --control",
        path.display()
    )]
    Absent {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The socket belongs to another user.
    #[error(
        "only root and the gateway's own user may use {}",
        path.display()
    )]
    Denied {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The gateway has ended, or does not answer in time.
    #[error("the gateway has not answered")]
    Lost(#[source] io::Error),
    /// The gateway is of another version.
    #[error("the answer of the gateway is not understood: end it and start this version")]
    Foreign(#[source] serde_json::Error),
    /// The gateway gives a reason.
    #[error("{0}")]
    Refused(String),
}

/// A question on its way.
#[derive(Debug)]
pub struct Client {
    answers: BufReader<UnixStream>,
}

impl Client {
    /// Asks the gateway with this control socket.
    ///
    /// # Errors
    /// If there is no gateway, or this process may not ask it.
    pub fn ask(path: &Path, question: &Question) -> Result<Self, AskError> {
        let mut stream = UnixStream::connect(path).map_err(|error| not_connected(path, error))?;
        let mut line = serde_json::to_vec(question).map_err(AskError::Foreign)?;
        line.push(b'\n');
        let limited = stream.set_read_timeout(Some(PATIENCE));
        limited.map_err(AskError::Lost)?;
        match stream.write_all(&line) {
            Err(error) => Err(lost(error)),
            Ok(()) => Ok(Self {
                answers: BufReader::new(stream),
            }),
        }
    }

    /// The next answer.
    ///
    /// # Errors
    /// If there is none, or it is a refusal.
    pub fn answer(&mut self) -> Result<Answer, AskError> {
        let mut line = Vec::new();
        let mut limited = self.answers.by_ref().take(MOST_BYTES);
        limited
            .read_until(b'\n', &mut line)
            .map_err(AskError::Lost)?;
        if line.is_empty() {
            return Err(AskError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        let answer = serde_json::from_slice(&line).map_err(AskError::Foreign)?;
        if let Answer::Refused(reason) = answer {
            return Err(AskError::Refused(reason));
        }
        Ok(answer)
    }

    /// Sends the file that [`Answer::File`] asks for.
    ///
    /// # Errors
    /// [`AskError::Lost`].
    pub fn give(&self, file: &File) -> Result<(), AskError> {
        descriptor::send(self.answers.get_ref(), file).map_err(lost)
    }

    /// What ends a capture from another thread; afterwards its last answer comes. The wait for that
    /// answer has no limit.
    ///
    /// # Errors
    /// EMFILE and ENFILE: there is no descriptor left.
    pub fn ender(&self) -> io::Result<Ender> {
        let stream = self.answers.get_ref();
        stream.set_read_timeout(None)?;
        Ok(Ender(stream.try_clone()?))
    }
}

/// Ends a capture.
#[derive(Debug)]
pub struct Ender(UnixStream);

impl Ender {
    /// Asks the gateway to end the capture.
    pub fn end(&self) {
        // A gateway that has ended has closed the capture.
        let _ended = self.0.shutdown(Shutdown::Write);
    }
}

/// The gateway has ended. A closed pipe would be taken for that of the output.
fn lost(error: io::Error) -> AskError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return AskError::Lost(io::ErrorKind::UnexpectedEof.into());
    }
    AskError::Lost(error)
}

fn not_connected(path: &Path, error: io::Error) -> AskError {
    let (kind, path) = (error.kind(), path.to_owned());
    if kind == io::ErrorKind::NotFound || kind == io::ErrorKind::ConnectionRefused {
        AskError::Absent { path }
    } else if kind == io::ErrorKind::PermissionDenied {
        AskError::Denied { path }
    } else {
        AskError::Lost(error)
    }
}
