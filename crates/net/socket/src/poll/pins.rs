//! Who is inside plain sockets while the kernel polls them: those are not bound meanwhile, for
//! the thread in the kernel could not be told.

use super::desk::SMALL;
use crate::sock::{Pin, Socket};
use crate::{table, thread};
use core::sync::atomic::{AtomicU32, Ordering};
use libc::pollfd;
use saiga_channel::sys::Fd;

/// Threads in a kernel poll over sockets that are not pinned one by one.
static POLLERS: AtomicU32 = AtomicU32::new(0);

/// Whether some thread sits in a kernel poll that may hold any socket: nothing is bound then,
/// for that thread could not be told.
pub(crate) fn somebody_polls() -> bool {
    POLLERS.load(Ordering::SeqCst) > 0
}

/// Counts the caller among the pollers until dropped.
#[derive(Debug)]
pub(super) struct Polling(());

impl Polling {
    fn begin() -> Polling {
        thread::bump(&POLLERS);
        Polling(())
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        thread::drop_one(&POLLERS);
    }
}

/// Forgets the pollers of other threads in a forked child.
pub(crate) fn forked() {
    if somebody_polls() {
        POLLERS.store(0, Ordering::SeqCst);
    }
}

/// Callers inside plain sockets while the kernel polls them: they cannot be bound then, and
/// all others can.
#[derive(Debug)]
pub struct Pins {
    few: [Option<Pin>; SMALL],
    many: Option<Polling>,
    len: usize,
}

impl Pins {
    fn new() -> Pins {
        Pins {
            few: [const { None }; SMALL],
            many: None,
            len: 0,
        }
    }

    /// Enters a socket; false, without having entered, when it is bound by now.
    fn add(&mut self, socket: &'static Socket) -> bool {
        let pin = socket.pin();
        if let Some(place) = self.few.get_mut(self.len) {
            *place = Some(pin);
        } else if self.many.is_none() {
            self.many = Some(Polling::begin());
        }
        if socket.is_bound() {
            if let Some(place) = self.few.get_mut(self.len) {
                *place = None;
            }
            return false;
        }
        self.len += 1;
        true
    }

    /// Whether the caller is inside all of the sockets that are plain now.
    pub(super) fn hold_all_plain(&self, fds: &[pollfd]) -> bool {
        let plain = |p: &&pollfd| table::socket(p.fd).is_some_and(|s| !s.is_bound());
        fds.iter().filter(plain).count() == self.len
    }
}

/// Enters the plain sockets of a kernel poll. `None`: one is bound by now, serve it here.
pub fn pin_plain(fds: impl IntoIterator<Item = Fd>) -> Option<Pins> {
    let mut pins = Pins::new();
    let mut sockets = fds.into_iter().filter_map(table::socket);
    sockets.all(|socket| pins.add(socket)).then_some(pins)
}

/// Enters the plain ones of several sockets.
pub(super) fn pin_unbound(fds: &[pollfd]) -> Pins {
    let mut pins = Pins::new();
    for socket in fds.iter().filter_map(|p| table::socket(p.fd)) {
        pins.add(socket);
    }
    pins
}
