//! Bells of threads that block in one call, borrowed for the time of a wait.
//!
//! A process has as many as it ever had threads blocked at once; each record keeps its bell.

use crate::asleep::Thing;
use crate::pool::{Pool, Record};
use crate::{lock, rt};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use saiga_channel::bell::Bell;
use saiga_channel::sys::{Errno, Sys};

/// Threads of one process that can block on channels at once.
const PLACES: usize = 65_536;
static POOL: Pool<ThreadPlace, PLACES> = Pool::new();

/// The bell of one blocked thread.
#[derive(Debug)]
pub(crate) struct ThreadPlace {
    fd: AtomicI32,
    name: AtomicU64,
    epoch: AtomicU32,
    next_free: AtomicPtr<ThreadPlace>,
}

impl Record for ThreadPlace {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

/// A borrowed bell; returned to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    place: &'static ThreadPlace,
    /// Its bell.
    pub(crate) bell: Bell,
}

/// Borrows a bell record, and makes its bell if it has none in this process.
///
/// # Errors
/// ENOMEM, EMFILE and the like: the caller cannot wait on a channel then.
pub(crate) fn borrow() -> Sys<Borrowed> {
    let place = POOL.take().ok_or(Errno(libc::ENOMEM))?;
    let (name, epoch) = (place.name.load(Ordering::Relaxed), lock::epoch());
    if name != 0 && place.epoch.load(Ordering::Relaxed) == epoch {
        let bell = Bell {
            fd: place.fd.load(Ordering::Relaxed),
            name,
        };
        return Ok(Borrowed { place, bell });
    }
    if name != 0 {
        // Inherited over fork: the bell is our parent's. Close our copy.
        rt::unhide_and_close(place.fd.load(Ordering::Relaxed));
        place.name.store(0, Ordering::Relaxed);
    }
    match Bell::create(rt::floor()) {
        Ok(bell) => {
            place.fd.store(rt::hidden(bell.fd), Ordering::Relaxed);
            place.epoch.store(epoch, Ordering::Relaxed);
            place.name.store(bell.name, Ordering::Relaxed);
            Ok(Borrowed { place, bell })
        }
        Err(e) => {
            POOL.put(place);
            Err(e)
        }
    }
}

impl Borrowed {
    /// The resource that the thread notes before it sleeps.
    pub(crate) fn thing(&self) -> Thing {
        Thing::Bell(self.place)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        POOL.put(self.place);
    }
}

/// Returns a bell that an abandoned frame had borrowed.
pub(crate) fn give_back(place: &'static ThreadPlace) {
    let bell = Bell {
        fd: place.fd.load(Ordering::Relaxed),
        name: place.name.load(Ordering::Relaxed),
    };
    if place.epoch.load(Ordering::Relaxed) == lock::epoch() {
        let _ = bell.drain();
    }
    POOL.put(place);
}
