//! Pins of plain sockets while the kernel polls them. A pinned socket is not bound: the thread in
//! the kernel could not be woken by its channel.

use super::scratch::SMALL;
use crate::asleep::{Asleep, Held};
use crate::sock::{Pin, Socket};
use crate::{table, thread};
use core::sync::atomic::{AtomicU32, Ordering};
use libc::pollfd;
use saiga_channel::sys::Fd;

/// Threads in a kernel poll over sockets that are not pinned one by one.
static POLLERS: AtomicU32 = AtomicU32::new(0);

/// Whether a thread is in a kernel poll over any sockets without pins. No socket is bound then,
/// because a channel could not wake that thread.
pub(crate) fn has_pollers() -> bool {
    POLLERS.load(Ordering::SeqCst) > 0
}

/// Counts the caller among the pollers until dropped.
#[derive(Debug)]
pub(super) struct Polling(());

impl Polling {
    fn begin() -> Polling {
        begin_polling();
        Polling(())
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        end_polling();
    }
}

/// Counts the calling thread as one that polls sockets without pins, until [`end_polling`].
pub(crate) fn begin_polling() {
    thread::bump(&POLLERS);
}

/// Undoes one [`begin_polling`], also for a thread that has jumped out of its poll.
pub(crate) fn end_polling() {
    thread::drop_one(&POLLERS);
}

/// Forgets the pollers of other threads in a forked child.
pub(crate) fn forked() {
    if has_pollers() {
        POLLERS.store(0, Ordering::SeqCst);
    }
}

/// Pins on the plain sockets of a kernel poll: those cannot be bound, all others can.
#[derive(Debug)]
pub struct Pins {
    /// The notes of this value, for a caller without its own.
    asleep: Option<Asleep>,
    few: [Option<Pin>; SMALL],
    many: Option<Polling>,
    len: usize,
}

impl Pins {
    fn new(asleep: Option<Asleep>) -> Pins {
        Pins {
            asleep,
            few: [const { None }; SMALL],
            many: None,
            len: 0,
        }
    }

    /// Pins a socket; false, without a pin, when it is bound by now.
    fn add(&mut self, socket: &'static Socket) -> bool {
        let pin = socket.pin();
        if let Some(entry) = self.few.get_mut(self.len) {
            *entry = Some(pin);
        } else if self.many.is_none() {
            self.many = Some(Polling::begin());
        }
        if socket.is_bound() {
            if let Some(entry) = self.few.get_mut(self.len) {
                *entry = None;
            }
            return false;
        }
        self.len += 1;
        true
    }

    /// Notes the pins, before the caller sleeps.
    pub(super) fn note(&self, asleep: &Asleep) {
        for pin in self.few.iter().take(self.len).flatten() {
            asleep.hold(Held::Pin(pin.0));
        }
        if self.many.is_some() {
            asleep.hold(Held::Polling);
        }
    }

    /// Whether all sockets that are plain now are pinned.
    pub(super) fn hold_all_plain(&self, fds: &[pollfd]) -> bool {
        let plain = |p: &&pollfd| table::socket(p.fd).is_some_and(|s| !s.is_bound());
        fds.iter().filter(plain).count() == self.len
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if self.asleep.take().is_none_or(Asleep::end) {
            return;
        }
        // Taken for abandoned: the pins were released already.
        self.few
            .iter_mut()
            .filter_map(Option::take)
            .for_each(core::mem::forget);
        core::mem::forget(self.many.take());
    }
}

/// Pins the plain sockets of a kernel poll. `None`: one is bound by now, serve the call here.
pub fn pin_plain(fds: impl IntoIterator<Item = Fd>) -> Option<Pins> {
    let mut pins = Pins::new(None);
    let mut sockets = fds.into_iter().filter_map(table::socket);
    if !sockets.all(|socket| pins.add(socket)) {
        return None;
    }
    if pins.len > 0 {
        let asleep = Asleep::begin(&pins);
        pins.note(&asleep);
        pins.asleep = Some(asleep);
    }
    Some(pins)
}

/// Pins those of several sockets that are plain.
pub(super) fn pin_unbound(fds: &[pollfd]) -> Pins {
    let mut pins = Pins::new(None);
    for socket in fds.iter().filter_map(|p| table::socket(p.fd)) {
        pins.add(socket);
    }
    pins
}
