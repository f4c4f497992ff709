//! The control socket: by it, `saiga gateway status` and the other verbs reach a gateway.
//!
//! The adversary is a local user without rights on the gateway. The socket has mode 0600, and the
//! kernel names the user of each client (SO_PEERCRED): nothing is read from clients that are
//! neither root nor the gateway's own user. A question has at most 8 KiB and two seconds, and an
//! answer two seconds. Clients are served one after the other by one thread. A capture goes on in
//! a thread of its own; there is one at a time, and it ends with its client.
//!
//! Deliberately absent: any question that changes the gateway, except a capture.

mod capture;
mod client;
mod descriptor;
mod peer;
mod protocol;

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

pub use client::{AskError, Client, Ender};
pub use protocol::{
    Anchor, Answer, BOUNDS_US, Captured, Connection, Connections, Device, End, Latency, Question,
    Status, Tcp, Traffic, Worker,
};

use crate::ending::Ending;
use crate::observer::Observer;
use crate::settings;
use crate::socket::Socket;
use crate::timed::Timed;
use capture::Captures;

/// Most bytes of a question.
const MOST_BYTES: usize = 8 << 10;
/// How long a client may take for a question, and for reading an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers clients until the gateway ends. Removes the socket then.
pub(crate) fn serve(
    socket: &Socket,
    observer: &Arc<Observer>,
    settings: &settings::Capture,
    ending: &Ending,
) {
    let mut captures = Captures::new(Arc::clone(observer), settings.clone(), ending.clone());
    let listener = &socket.listener;
    while let Some((client, _)) = ending.accept(listener.as_fd(), || listener.accept()) {
        if peer::is_admitted(&client) {
            // A client that has ended, or is too slow, gets no answer.
            let _lost = answer(client, observer, &mut captures);
        }
    }
}

/// Answers the question of a client.
fn answer(mut client: UnixStream, observer: &Observer, captures: &mut Captures) -> io::Result<()> {
    let is_line = |all: &[u8]| all.ends_with(b"\n");
    let question = Timed::new(&mut client, PATIENCE).read_until(MOST_BYTES, is_line)?;
    let answer = match serde_json::from_slice(&question) {
        Ok(Question::Status) => Answer::Status(observer.status()),
        Ok(Question::Connections { worker, from }) => match observer.connections(worker, from) {
            Ok(connections) => Answer::Connections(connections),
            Err(error) => Answer::Refused(error.to_string()),
        },
        Ok(Question::Capture { filter }) => match captures.begin(client, &filter) {
            Ok(()) => return Ok(()),
            Err((refused, reason)) => {
                client = refused;
                Answer::Refused(reason)
            }
        },
        Err(error) => Answer::Refused(format!("this gateway does not know the question: {error}")),
    };
    send(&mut client, &answer)
}

/// Writes an answer.
fn send(client: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    Timed::new(client, PATIENCE).write_all(&line)
}
