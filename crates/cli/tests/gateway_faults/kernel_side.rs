//! A conversation with a port that the gateway does not serve, as ssh has it: by the kernel, on the
//! same interface and address.
//!
//! Only with AF_XDP: the other end of a TAP device is not an interface of the server's host.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::world::{SERVER, Wire, World};

/// A port without `[[serve]]`.
const PORT: u16 = 2222;
/// The kernel's connection outlives all faults of the device.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a message, as of an interactive session.
const MESSAGE: usize = 100;

/// The conversation; absent with a TAP device.
pub(crate) struct KernelSide(Option<Talk>);

struct Talk {
    over: Arc<AtomicBool>,
    server: JoinHandle<()>,
    /// Returns the number of echoes.
    client: JoinHandle<u64>,
}

impl KernelSide {
    /// Begins the conversation.
    pub(crate) fn start(world: &World) -> Self {
        if world.wire != Wire::Xdp {
            return Self(None);
        }
        let listener = TcpListener::bind((SERVER, PORT)).unwrap();
        let server = thread::spawn(move || echo(&listener.accept().unwrap().0));
        let stream = world.connect(PORT, PATIENCE).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let client = thread::spawn(move || ask(stream, &theirs));
        Self(Some(Talk {
            over,
            server,
            client,
        }))
    }

    /// Ends the conversation; all echoes were right.
    pub(crate) fn end(self) {
        let Self(Some(talk)) = self else {
            return;
        };
        talk.over.store(true, Ordering::Relaxed);
        let echoes = talk.client.join().unwrap();
        talk.server.join().unwrap();
        assert!(echoes > 0, "the kernel has served nothing");
    }
}

/// Sends back what comes, until the client ends.
fn echo(mut stream: &TcpStream) {
    let mut bytes = [0; MESSAGE];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => stream.write_all(&bytes[..count]).unwrap(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
        }
    }
}

fn ask(mut stream: TcpStream, over: &AtomicBool) -> u64 {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut echoes = 0_u64;
    while !over.load(Ordering::Relaxed) {
        let message = [echoes.to_le_bytes()[0]; MESSAGE];
        stream.write_all(&message).unwrap();
        let mut answer = [0; MESSAGE];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, message);
        echoes += 1;
    }
    echoes
}
