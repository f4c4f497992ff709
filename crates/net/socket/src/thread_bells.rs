//! Bells of threads that block in one call, borrowed for the time of a wait.
//!
//! A process has as many as it ever had threads blocked at once; each record keeps its bell.

use crate::asleep::Held;
use crate::pool::{Pool, Record};
use crate::{lock, rt};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use saiga_channel::bell::Bell;
use saiga_channel::sys::{Errno, Sys};

/// Threads of one process that can block on channels at once.
const BELLS: usize = 65_536;
static POOL: Pool<ThreadBell, BELLS> = Pool::new();

/// The bell of one blocked thread.
#[derive(Debug)]
pub(crate) struct ThreadBell {
    fd: AtomicI32,
    name: AtomicU64,
    epoch: AtomicU32,
    next_free: AtomicPtr<ThreadBell>,
}

impl Record for ThreadBell {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

/// A borrowed bell; returned to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    record: &'static ThreadBell,
}

/// Borrows a bell record, and makes its bell if it has none in this process.
///
/// # Errors
/// ENOMEM, EMFILE and the like: the caller cannot wait on a channel then.
pub(crate) fn borrow() -> Sys<Borrowed> {
    let record = POOL.take().ok_or(Errno(libc::ENOMEM))?;
    let (name, epoch) = (record.name.load(Ordering::Relaxed), lock::epoch());
    if name != 0 && record.epoch.load(Ordering::Relaxed) == epoch {
        return Ok(Borrowed { record });
    }
    if name != 0 {
        // Inherited over fork: the bell is our parent's. Close our copy.
        rt::unhide_and_close(record.fd.load(Ordering::Relaxed));
        record.name.store(0, Ordering::Relaxed);
    }
    match Bell::create(rt::floor()) {
        Ok(bell) => {
            rt::keep(&record.fd, bell.fd);
            record.epoch.store(epoch, Ordering::Relaxed);
            record.name.store(bell.name, Ordering::Relaxed);
            Ok(Borrowed { record })
        }
        Err(e) => {
            POOL.put(record);
            Err(e)
        }
    }
}

impl ThreadBell {
    fn bell(&self) -> Bell {
        Bell {
            fd: self.fd.load(Ordering::Relaxed),
            name: self.name.load(Ordering::Relaxed),
        }
    }
}

impl Borrowed {
    /// The bell, whose descriptor may get another number ([`rt::move_away`]).
    pub(crate) fn bell(&self) -> Bell {
        self.record.bell()
    }

    /// The resource that the thread notes before it sleeps.
    pub(crate) fn held(&self) -> Held {
        Held::Bell(self.record)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        POOL.put(self.record);
    }
}

/// Returns a bell that an abandoned frame had borrowed.
pub(crate) fn give_back(record: &'static ThreadBell) {
    if record.epoch.load(Ordering::Relaxed) == lock::epoch() {
        let _ = record.bell().drain();
    }
    POOL.put(record);
}

/// Wakes the thread that waits at the bell whose descriptor has got another number, if `holder` is
/// that of a bell: the kernel begins some interrupted waits again, with the former number.
pub(crate) fn moved(holder: &AtomicI32) {
    if let Some(record) = POOL
        .all()
        .find(|record| core::ptr::eq(&raw const record.fd, holder))
    {
        rt::ring(record.bell().name);
    }
}
