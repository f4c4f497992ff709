//! The gate: an open waits (FAN_OPEN_PERM on single directories) until its file has its hint, so
//! that even the first byte is written with it.
//!
//! One thread answers opens and does nothing else: it opens no files, takes no lock that is held
//! during a system call on a file, and writes no log. A watchdog thread opens the gate for good if
//! one open takes too long: it replaces the fanotify descriptor by /dev/null, and the kernel allows
//! all opens. The kernel does the same when the process ends in any way; therefore the descriptor
//! has the highest [`NUMBER`], and the process dumps no core (also an open) and ignores the stop
//! keys of a terminal. The kernel opens the file when an event is read, which may wait for a lease
//! (`man 2 fcntl`): events are read one at a time, and the read is part of the timed open.

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
use crate::setter::{Outcome, Request, Setter, apply};
use crate::sys;
use crate::tree::{self, Identity};
use crate::view::View;

/// The number of the gate's descriptor; the highest number allowed if the limit is lower.
///
/// A waiting open pins the marks of *all* groups for the file (`fsnotify_prepare_user_wait`,
/// fs/notify/mark.c), also those of the groups for names, and closing a group waits for its marks.
/// The kernel closes the descriptors of a dying process from the highest to the lowest
/// (`task_work_run`). If the gate had a lower number than a group for names, that group would wait
/// for the open, the open for the gate, and the gate for the group: a deadlock, seen on Linux 6.18.
pub(crate) const NUMBER: i32 = 4000;
/// The soft limit of descriptors that this process sets; no descriptor gets a higher number than
/// the gate's.
const DESCRIPTORS: u64 = 4096;

/// Most threads that answer waiting opens when the gate is opened; each may block at one of them.
const DRAINERS: u32 = 16;
/// The time after which the next such thread is started.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// The longest interval between two checks of the watchdog.
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The state that the threads share.
struct Shared {
    group: OwnedFd,
    /// An open /dev/null, which replaces the group when the gate is opened.
    null: OwnedFd,
    view: RwLock<Arc<View>>,
    setter: Arc<dyn Setter>,
    counters: Arc<Counters>,
    start: Instant,
    /// The time at which the read of the current open began, in microseconds since `start`; 0
    /// without one.
    since: AtomicU64,
    /// The descriptor of the current open; -1 without one.
    held: AtomicI32,
    /// Eventfd, signalled when the gate is dropped.
    end_event: OwnedFd,
    /// Set when the labeller must end; its thread may wait at this gate with an open of its own.
    shall_end: Arc<AtomicBool>,
    is_open: AtomicBool,
    /// The errno of a failed read of an event; 0 without one.
    failure: AtomicI32,
    /// Hints that the gate has set and the labeller has not taken yet. The gate holds the lock
    /// while it sets a hint, so that the labeller does not take the hint for another program's.
    labelled: Mutex<Vec<(Identity, Hint)>>,
    /// Eventfd, signalled when the gate was opened early.
    opened_event: OwnedFd,
    pid: i32,
    /// For tests: the gate stalls at the open of a file with this name.
    drill: Option<OsString>,
}

/// The gate. Dropping it allows all opens.
pub(crate) struct Gate {
    shared: Arc<Shared>,
}

impl Gate {
    /// Creates a gate without directories. An open that takes longer than `limit` opens it for
    /// good.
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
            end_event: event()?,
            shall_end,
            is_open: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            labelled: Mutex::default(),
            opened_event: event()?,
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            drill,
        });
        let gate = Self { shared };
        let (answerer, watchdog) = (Arc::clone(&gate.shared), Arc::clone(&gate.shared));
        thread::Builder::new()
            .name("saiga-gate".to_owned())
            .spawn(move || answerer.answer_opens())?;
        thread::Builder::new()
            .name("saiga-watchdog".to_owned())
            .spawn(move || watchdog.watch(limit))?;
        gate.shared.counters.gate_closed.store(1, Ordering::Relaxed);
        Ok(gate)
    }

    /// Replaces the view that maps paths to rules.
    pub(crate) fn set_view(&self, view: Arc<View>) {
        let mut current = (self.shared.view.write()).unwrap_or_else(PoisonError::into_inner);
        *current = view;
    }

    /// Makes opens of files in the open directory `dir` wait for their label.
    pub(crate) fn close(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.is_open() {
            return Ok(());
        }
        let mask = libc::FAN_OPEN_PERM | libc::FAN_EVENT_ON_CHILD;
        match sys::fanotify_mark(self.shared.group.as_fd(), libc::FAN_MARK_ADD, mask, dir) {
            // The watchdog has replaced the group by /dev/null, which takes no marks.
            Err(Errno::INVAL) if self.is_open() => Ok(()),
            done => done,
        }
    }

    /// Whether the gate was opened early.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Acquire)
    }

    /// Returns a descriptor that is readable once the gate was opened early.
    pub(crate) fn opened_event(&self) -> BorrowedFd<'_> {
        self.shared.opened_event.as_fd()
    }

    /// Returns the error if the gate was opened because no event could be read. `None` if an open
    /// took too long.
    pub(crate) fn failure(&self) -> Option<Errno> {
        let number = self.shared.failure.load(Ordering::Acquire);
        (number != 0).then(|| Errno::from_raw_os_error(number))
    }

    /// Returns the hints that the gate has set since the last call.
    pub(crate) fn take_labelled(&self) -> Vec<(Identity, Hint)> {
        std::mem::take(&mut *self.shared.labelled())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.open();
        signal(&self.shared.end_event);
    }
}

/// Prepares a process on which opens of other processes depend: it ignores the stop signals of a
/// terminal and dumps no core, whose open would wait at the gate after the threads have ended.
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

fn signal(event: &OwnedFd) {
    // Fails only after 2^64 - 2 signals.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

impl Shared {
    fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn labelled(&self) -> std::sync::MutexGuard<'_, Vec<(Identity, Hint)>> {
        self.labelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows all opens, now and later.
    fn open(self: &Arc<Self>) {
        self.is_open.store(true, Ordering::Release);
        // First no new waiters, then an answer to each waiting open. Closing alone would have no
        // effect while the other thread sleeps on the descriptor.
        let flush = libc::FAN_MARK_FLUSH;
        let _ = sys::fanotify_mark(self.group.as_fd(), flush, 0, rustix::fs::CWD);
        let held = self.held.load(Ordering::Acquire);
        if held >= 0 {
            self.allow(held);
        }
        self.drain();
        // Closes the last descriptor of the group, so that the kernel allows the remaining opens.
        // The number stays in use: the other thread may still write an answer to it.
        let _ = sys::replace(&self.group, &self.null);
        self.counters.gate_closed.store(0, Ordering::Relaxed);
    }

    /// Answers all waiting opens. A read of an event may block (leases); then another thread
    /// answers the next one, and the blocked thread answers its own later.
    fn drain(self: &Arc<Self>) {
        for _ in 0..DRAINERS {
            let (sender, receiver) = mpsc::channel();
            let drainer = Arc::clone(self);
            let spawned = thread::Builder::new().spawn(move || {
                drainer.answer_all();
                let _ = sender.send(());
            });
            if spawned.is_err() {
                return self.answer_all();
            }
            if receiver.recv_timeout(DRAIN_TIMEOUT).is_ok() {
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

    /// Allows one open. The kernel refuses the answer if the open was answered already.
    fn allow(&self, file: i32) {
        let mut answer = [0; 8];
        let (fd, response) = answer.split_at_mut(4);
        fd.copy_from_slice(&file.to_ne_bytes());
        response.copy_from_slice(&libc::FAN_ALLOW.to_ne_bytes());
        let _ = rustix::io::write(&self.group, &answer);
    }

    /// The main function of the thread that answers opens.
    fn answer_opens(self: &Arc<Self>) {
        let mut buffer = [0; events::HEADER];
        loop {
            let mut wait = [
                PollFd::new(&self.group, PollFlags::IN),
                PollFd::new(&self.end_event, PollFlags::IN),
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
                // End of file, from /dev/null: the gate was opened.
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

    /// Opens the gate, because the kernel refuses an open if it cannot deliver the event.
    fn fail(self: &Arc<Self>, error: Errno) {
        self.failure.store(error.raw_os_error(), Ordering::Release);
        self.open();
        signal(&self.opened_event);
    }

    fn on_event(&self, event: &Event) {
        let Event::Opening { file: raw, pid } = event else {
            return;
        };
        let Some(file) = sys::event_file(*raw) else {
            return;
        };
        self.held.store(*raw, Ordering::Release);
        // Opens of this process are those of scans, which label and log the file themselves.
        if *pid != self.pid {
            self.label(file.as_fd());
        }
        // Closed before the answer, which needs only the number: an opener that takes a lease must
        // find no other open of the file.
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
        let request = Request {
            hint: rule.hint,
            force: rule.force,
            ours: None,
        };
        let Ok(identity) = tree::identity(file) else {
            return;
        };
        let mut labelled = self.labelled();
        // An error here occurs again in the labeller's thread, which logs it.
        if let Ok(Outcome::Set) = apply(&*self.setter, file, request) {
            labelled.push((identity, rule.hint));
            count(&self.counters.set);
            count(&self.counters.gated);
        }
    }

    /// Stalls like a blocked system call until the gate is opened or dropped.
    fn stall(&self) {
        loop {
            let events = [&self.opened_event, &self.end_event];
            let mut over = events.map(|it| PollFd::new(it, PollFlags::IN));
            if rustix::event::poll(&mut over, None).is_ok() {
                return;
            }
        }
    }

    /// The main function of the watchdog thread. It lives until the gate is dropped, because it
    /// handles the signals of the process: the labeller's thread blocks them, and the other thread
    /// of the gate ends when the gate is opened.
    fn watch(self: &Arc<Self>, limit: Duration) {
        self.open_in_time(limit);
        loop {
            let mut end = [PollFd::new(&self.end_event, PollFlags::IN)];
            if rustix::event::poll(&mut end, None).is_ok() {
                return;
            }
        }
    }

    /// Opens the gate if one open takes too long. Returns once the gate is open or dropped.
    fn open_in_time(self: &Arc<Self>, limit: Duration) {
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        let interval = MAX_CHECK_INTERVAL.min(limit / 4);
        let interval = Timespec::try_from(interval).unwrap_or_default();
        loop {
            let mut end = [PollFd::new(&self.end_event, PollFlags::IN)];
            let polled = rustix::event::poll(&mut end, Some(&interval));
            if self.is_open.load(Ordering::Acquire) || matches!(polled, Ok(1..)) {
                return;
            }
            // A signal handler on this thread has set the flag.
            if self.shall_end.load(Ordering::Acquire) {
                self.open();
                return;
            }
            let since = self.since.load(Ordering::Acquire);
            if since != 0 && self.micros().saturating_sub(since) > limit_us {
                self.open();
                count(&self.counters.stalls);
                signal(&self.opened_event);
                return;
            }
        }
    }
}
