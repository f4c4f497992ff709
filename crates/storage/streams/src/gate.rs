//! The gate: an open of a file waits until the file has its hint, so that its first byte is written under it.
//!
//! FAN_OPEN_PERM on single directories. One thread answers and does nothing else: it opens no file, takes no lock
//! that is held over a system call on a file, and writes no log. A second one opens the gate for good when the first has
//! been at one open for too long: it puts /dev/null in the place of the fanotify descriptor, which lets everybody
//! through. When the process dies, however it dies, the kernel does the same; for that the gate's descriptor has the
//! [`NUMBER`] above all others, the process leaves no core (which is an open, too), and the keys of a terminal do not
//! stop it.
//!
//! The kernel opens each file that is told of, when its event is read: for that it takes a descriptor of ours, and may
//! wait for whoever has a lease on the file (`man 2 fcntl`). So events are read one at a time, and reading counts as part
//! of the open.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, getrlimit, setrlimit};

use crate::counters::{Counters, count};
use crate::events::{self, Event};
use crate::hint::Hint;
use crate::opened;
use crate::setter::{Outcome, Setter, Wish, apply};
use crate::sys;
use crate::tree::{self, Identity};
use crate::view::View;

/// The number of the gate's descriptor, or one below the limit.
///
/// An open that waits pins the marks of *all* groups on its way (`fsnotify_prepare_user_wait`, fs/notify/mark.c), also
/// that of the queue of names; that group's end waits until they are let go. A process that dies gives up its descriptors
/// from the highest on (`task_work_run`). So were the gate below the queue, the queue would wait for the open, the open for
/// the gate, and the gate for the queue, for ever: seen on Linux 6.18.
pub(crate) const NUMBER: i32 = 4000;
/// Descriptors that this process may have: what is above the gate's is for nobody.
const DESCRIPTORS: u64 = 4096;

/// Threads that let waiting opens through, of which each may be held up at one.
const DRAINERS: u32 = 16;
/// How long such a thread may take before another one is sent.
const PATIENCE: Duration = Duration::from_millis(50);

/// The watchdog looks at least this often.
const LONGEST_NAP: Duration = Duration::from_millis(250);

/// What the threads share.
struct Shared {
    group: OwnedFd,
    /// What takes the place of the group when the gate is opened.
    null: OwnedFd,
    view: RwLock<Arc<View>>,
    setter: Arc<dyn Setter>,
    counters: Arc<Counters>,
    start: Instant,
    /// Microseconds from `start` to when the open at hand was begun to be read, and 0 while there is none.
    since: AtomicU64,
    /// The descriptor of that open, and -1 while there is none.
    held: AtomicI32,
    /// Raised when the gate shall end.
    end: OwnedFd,
    /// Set when the labeller shall end, which may wait at this gate with an open of its own.
    shall_end: Arc<AtomicBool>,
    is_open: AtomicBool,
    /// Why no event could be read, and 0 where all could.
    failure: AtomicI32,
    /// Hints that were given here and that the labeller has not been told of. The labeller holds this for a moment only;
    /// the gate also while it gives one, lest that is taken for somebody else's.
    given: Mutex<Vec<(Identity, Hint)>>,
    /// Raised when the gate was opened before its end.
    bell: OwnedFd,
    pid: i32,
    /// The name at whose open the gate stalls: a drill.
    drill: Option<OsString>,
}

/// The gate; it is open again when this is dropped.
pub(crate) struct Gate {
    shared: Arc<Shared>,
}

impl Gate {
    /// A gate without directories. An open that takes longer than `limit` opens it for good.
    pub(crate) fn new(
        setter: Arc<dyn Setter>,
        counters: Arc<Counters>,
        limit: Duration,
        drill: Option<OsString>,
        shall_end: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let flags = libc::FAN_CLASS_CONTENT
            | libc::FAN_CLOEXEC
            | libc::FAN_NONBLOCK
            | libc::FAN_UNLIMITED_MARKS;
        let files = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE).cast_unsigned();
        harden()?;
        let event = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        let shared = Arc::new(Shared {
            group: numbered(&sys::fanotify_init(flags, files)?)?,
            null: null.into(),
            view: RwLock::default(),
            setter,
            counters,
            start: Instant::now(),
            since: AtomicU64::new(0),
            held: AtomicI32::new(-1),
            end: event()?,
            shall_end,
            is_open: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            given: Mutex::default(),
            bell: event()?,
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            drill,
        });
        let gate = Self { shared };
        let (keeper, watchdog) = (Arc::clone(&gate.shared), Arc::clone(&gate.shared));
        thread::Builder::new()
            .name("saiga-gate".to_owned())
            .spawn(move || keeper.keep())?;
        thread::Builder::new()
            .name("saiga-watchdog".to_owned())
            .spawn(move || watchdog.watch(limit))?;
        gate.shared.counters.gate_shut.store(1, Ordering::Relaxed);
        Ok(gate)
    }

    /// From now on these are the rules.
    pub(crate) fn show(&self, view: Arc<View>) {
        let mut shown = (self.shared.view.write()).unwrap_or_else(PoisonError::into_inner);
        *shown = view;
    }

    /// Lets opens of files in the open directory `dir` wait.
    pub(crate) fn close(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.is_open() {
            return Ok(());
        }
        let mask = libc::FAN_OPEN_PERM | libc::FAN_EVENT_ON_CHILD;
        match sys::fanotify_mark(self.shared.group.as_fd(), libc::FAN_MARK_ADD, mask, dir) {
            // The watchdog was faster: /dev/null takes no marks.
            Err(Errno::INVAL) if self.is_open() => Ok(()),
            done => done,
        }
    }

    /// Whether it was opened before its end.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Acquire)
    }

    /// Readable once it was opened before its end.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Why it was opened, if no event could be read; else an open took too long.
    pub(crate) fn failure(&self) -> Option<Errno> {
        let number = self.shared.failure.load(Ordering::Acquire);
        (number != 0).then(|| Errno::from_raw_os_error(number))
    }

    /// The hints that it has given since the last call.
    pub(crate) fn take_given(&self) -> Vec<(Identity, Hint)> {
        std::mem::take(&mut *self.shared.given())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.open();
        ring(&self.shared.end);
    }
}

/// So that this process, which everybody waits for, is not stopped by Ctrl-Z or by what it says to a terminal, and leaves no
/// core: that would be written by an open that waits for a gate whose threads are gone.
fn harden() -> io::Result<()> {
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        sys::ignore(signal)?;
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut files = getrlimit(Resource::Nofile);
    let most = files.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    if files.current.is_some_and(|limit| limit < most) {
        files.current = Some(most);
        setrlimit(Resource::Nofile, files)?;
    }
    Ok(())
}

fn numbered(group: &OwnedFd) -> io::Result<OwnedFd> {
    let limit = getrlimit(Resource::Nofile).current;
    let last = limit.and_then(|limit| i32::try_from(limit.saturating_sub(1)).ok());
    let number = last.map_or(NUMBER, |last| last.min(NUMBER));
    Ok(rustix::io::fcntl_dupfd_cloexec(group, number)?)
}

fn ring(bell: &OwnedFd) {
    // It fails only when it has been rung 2^64 - 2 times.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

impl Shared {
    fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn given(&self) -> std::sync::MutexGuard<'_, Vec<(Identity, Hint)>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everybody through, now and later.
    fn open(self: &Arc<Self>) {
        self.is_open.store(true, Ordering::Release);
        // No new waiters; then an answer to each that waits, whoever has read its event: closing alone does nothing as
        // long as the other thread sleeps on the descriptor.
        let flush = libc::FAN_MARK_FLUSH;
        let _ = sys::fanotify_mark(self.group.as_fd(), flush, 0, rustix::fs::CWD);
        let held = self.held.load(Ordering::Acquire);
        if held >= 0 {
            self.allow(held);
        }
        self.drain();
        // The group's last descriptor goes; the kernel allows what waits for an answer. The number stays taken, so the
        // other thread cannot write its answer into somebody else's file.
        let _ = sys::replace(&self.group, &self.null);
        self.counters.gate_shut.store(0, Ordering::Relaxed);
    }

    /// Answers all that wait. The kernel may hold up whoever reads of one, and then another thread goes on with the next;
    /// what that one waits for is allowed when it comes back.
    fn drain(self: &Arc<Self>) {
        for _ in 0..DRAINERS {
            let (done, heard) = mpsc::channel();
            let drainer = Arc::clone(self);
            let spawned = thread::Builder::new().spawn(move || {
                drainer.answer_all();
                let _ = done.send(());
            });
            if spawned.is_err() {
                return self.answer_all();
            }
            if heard.recv_timeout(PATIENCE).is_ok() {
                return;
            }
        }
    }

    fn answer_all(&self) {
        let mut buffer = [0; events::HEADER];
        while let Ok(len @ 1..) = rustix::io::read(&self.group, &mut buffer) {
            for event in events::read(buffer.get(..len).unwrap_or_default()) {
                if let Event::Opening { file, .. } = event {
                    drop(sys::event_file(file));
                    self.allow(file);
                }
            }
        }
    }

    /// Answers one waiter. When that is not taken, it has been answered already.
    fn allow(&self, file: i32) {
        let mut answer = [0; 8];
        let (fd, response) = answer.split_at_mut(4);
        fd.copy_from_slice(&file.to_ne_bytes());
        response.copy_from_slice(&libc::FAN_ALLOW.to_ne_bytes());
        let _ = rustix::io::write(&self.group, &answer);
    }

    /// The thread that answers.
    fn keep(self: &Arc<Self>) {
        let mut buffer = [0; events::HEADER];
        loop {
            let mut wait = [
                PollFd::new(&self.group, PollFlags::IN),
                PollFd::new(&self.end, PollFlags::IN),
            ];
            let polled = rustix::event::poll(&mut wait, None);
            let [_, end] = &wait;
            if !end.revents().is_empty() {
                return;
            }
            if polled.is_err() {
                continue;
            }
            let begun = self.micros().max(1);
            self.since.store(begun, Ordering::Release);
            match rustix::io::read(&self.group, &mut buffer) {
                // /dev/null: the gate is open.
                Ok(0) => return,
                Ok(len) => {
                    for event in events::read(buffer.get(..len).unwrap_or_default()) {
                        self.on_event(&event);
                    }
                    let held = self.micros().saturating_sub(begun);
                    self.counters.held.fetch_max(held, Ordering::Relaxed);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return self.fail(error),
            }
            self.since.store(0, Ordering::Release);
        }
    }

    /// An open was refused by the kernel, which could not tell us of it; others shall not be.
    fn fail(self: &Arc<Self>, error: Errno) {
        self.failure.store(error.raw_os_error(), Ordering::Release);
        self.open();
        ring(&self.bell);
    }

    fn on_event(&self, event: &Event) {
        let Event::Opening { file: raw, pid } = event else {
            return;
        };
        let Some(file) = sys::event_file(*raw) else {
            return;
        };
        self.held.store(*raw, Ordering::Release);
        // Our own opens come from looks, which label what they open, and say so.
        if *pid != self.pid {
            self.label(file.as_fd());
        }
        // Before the answer, which goes by the number alone: who was let through finds nobody else at the file (leases).
        drop(file);
        self.allow(*raw);
        self.held.store(-1, Ordering::Release);
    }

    fn label(&self, file: BorrowedFd<'_>) {
        let view = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner));
        let Some(path) = opened::path(&view, file) else {
            return;
        };
        if self.drill.is_some() && path.file_name() == self.drill.as_deref().map(OsStr::new) {
            self.stall();
        }
        let Some(rule) = view.decide(&path) else {
            return;
        };
        let wish = Wish {
            hint: rule.hint,
            force: rule.force,
            ours: None,
        };
        let Ok(identity) = tree::identity(file) else {
            return;
        };
        let mut given = self.given();
        // A file that is refused here is refused again, and named, where it is logged.
        if let Ok(Outcome::Set) = apply(&*self.setter, file, wish) {
            given.push((identity, rule.hint));
            count(&self.counters.set);
            count(&self.counters.gated);
        }
    }

    /// What the watchdog is for, on demand: it goes on once the gate was opened for it, or ends.
    fn stall(&self) {
        loop {
            let mut over = [&self.bell, &self.end].map(|it| PollFd::new(it, PollFlags::IN));
            if rustix::event::poll(&mut over, None).is_ok() {
                return;
            }
        }
    }

    /// The thread that watches the other one, and hears signals until the gate's end: the labeller's own leaves them
    /// to the gate's threads, of which the other ends with an open gate.
    fn watch(self: &Arc<Self>, limit: Duration) {
        self.open_in_time(limit);
        loop {
            let mut end = [PollFd::new(&self.end, PollFlags::IN)];
            if rustix::event::poll(&mut end, None).is_ok() {
                return;
            }
        }
    }

    /// Opens the gate when one open takes too long; ends once it is open.
    fn open_in_time(self: &Arc<Self>, limit: Duration) {
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        let nap = Timespec::try_from(LONGEST_NAP.min(limit / 4)).unwrap_or_default();
        loop {
            let mut end = [PollFd::new(&self.end, PollFlags::IN)];
            let polled = rustix::event::poll(&mut end, Some(&nap));
            if self.is_open.load(Ordering::Acquire) || matches!(polled, Ok(1..)) {
                return;
            }
            // A signal has interrupted the nap: who handles it here is this thread.
            if self.shall_end.load(Ordering::Acquire) {
                self.open();
                return;
            }
            let since = self.since.load(Ordering::Acquire);
            if since != 0 && self.micros().saturating_sub(since) > limit_us {
                self.open();
                count(&self.counters.stalls);
                ring(&self.bell);
                return;
            }
        }
    }
}
