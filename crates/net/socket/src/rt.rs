//! State of the process: settings, the library's own descriptors, the status page.
//!
//! Everything is a constant-initialised static. So hooks that run before the constructor find a
//! library that passes every call through.

use crate::fork::CHANGED;
use crate::lock::Lock;
use crate::signals_blocked::SignalsBlocked;
use crate::{kernel, links, process, table, thread, thread_bells};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use saiga_channel::bell::Ringer;
use saiga_channel::diag::{self, SocketInfo};
use saiga_channel::sys;
use saiga_channel::tuple::Tuple;
use saiga_settings::Settings;
use saiga_status::{Entry, Header, Reason, State, StatusPage};
use std::sync::OnceLock;
use sys::{Errno, Fd, Sys};

/// Whether new connections may be upgraded.
pub(crate) static ENABLED: AtomicBool = AtomicBool::new(false);
/// The process has enabled seccomp: nothing is upgraded any more.
pub(crate) static SANDBOXED: AtomicBool = AtomicBool::new(false);
/// The process has entered another namespace: nothing is upgraded any more.
pub(crate) static NAMESPACE_LEFT: AtomicBool = AtomicBool::new(false);
/// Messages before a connection is worth a channel.
static EVIDENCE: AtomicU32 = AtomicU32::new(64);
/// Logarithm of the largest ring's capacity in bytes.
static MAX_SHIFT: AtomicU32 = AtomicU32::new(18);
/// Longest spin in microseconds.
static SPIN_US: AtomicU64 = AtomicU64::new(50);
/// The sock_diag socket; -1 before its first use.
static DIAG: AtomicI32 = AtomicI32::new(-1);
/// Descriptor of the status page, -1 when there is none.
static PAGE_FD: AtomicI32 = AtomicI32::new(-1);
/// Rings the bells of other processes.
static RINGER: Ringer = Ringer::new();

static PAGE: OnceLock<StatusPage> = OnceLock::new();

/// Stores the settings that do not change while the process lives: rings and waiting.
pub(crate) fn start(settings: &Settings) {
    let spin = u64::try_from(settings.spin.value.get().as_micros()).unwrap_or(50);
    SPIN_US.store(spin, Ordering::Relaxed);
    EVIDENCE.store(settings.evidence_messages.value, Ordering::Relaxed);
    let ring = settings
        .ring
        .value
        .get()
        .max(1 << saiga_channel::layout::START_SHIFT);
    let shift = ring.ilog2().min(saiga_channel::layout::STRIDE_SHIFT);
    MAX_SHIFT.store(shift, Ordering::Relaxed);
}

/// Stores the process id.
pub(crate) fn store_pid() {
    CHANGED.pid.store(sys::getpid(), Ordering::Relaxed);
}

/// Opens the status page. Without a page nothing is shown, and everything else works.
pub(crate) fn open_page() {
    let Ok((fd, page)) = StatusPage::create(u32::try_from(table::numbers()).unwrap_or(0)) else {
        return;
    };
    if let Ok(fd) = sys::move_up(fd, floor()) {
        keep(&PAGE_FD, fd);
    }
    let _ = PAGE.set(page);
}

/// Closes in a forked child the descriptors of its parent. The child gets its status page later:
/// making one costs as much as half a fork, and most children have nothing to show.
pub(crate) fn forked() {
    CHANGED.pid.store(sys::getpid(), Ordering::Relaxed);
    let diag = DIAG.load(Ordering::Relaxed);
    if diag >= 0 {
        DIAG.store(-1, Ordering::Relaxed);
    }
    unhide_and_close(diag);
    unhide_and_close(RINGER.forget());
    if PAGE.get().is_some() {
        CHANGED.parents_page.store(true, Ordering::Release);
    }
}

/// Gives a forked child its own page, once it has something to show.
fn own_page() {
    static MAKING: Lock = Lock::new();
    let is_parents = || CHANGED.parents_page.load(Ordering::Acquire);
    if !is_parents() || !in_own_process() {
        return;
    }
    // A signal handler that jumped out of here would leave the lock held for ever.
    let _blocked = SignalsBlocked::begin();
    let Some(_guard) = MAKING.lock() else { return };
    let Some(page) = PAGE.get().filter(|_| is_parents()) else {
        return;
    };
    unhide_and_close(PAGE_FD.swap(-1, Ordering::Relaxed));
    let made = page.replace_after_fork();
    if let Ok(Ok(fd)) = made.map(|fd| sys::move_up(fd, floor())) {
        keep(&PAGE_FD, fd);
    }
    // If that failed, the page is private memory by now.
    CHANGED.parents_page.store(false, Ordering::Release);
}

/// Closes one of the library's own descriptors.
pub(crate) fn unhide_and_close(fd: Fd) {
    if fd >= 0 {
        table::clear(fd);
        sys::close(fd);
    }
}

/// Stores a descriptor of the library's own in `holder` and hides it from the application.
pub(crate) fn keep(holder: &'static AtomicI32, fd: Fd) {
    holder.store(fd, Ordering::SeqCst);
    table::hide(fd, holder);
}

/// Moves one of the library's own descriptors to another number, because the application makes a
/// descriptor with this one. False if no other number is free, or the descriptor is just being
/// closed.
pub(crate) fn move_away(fd: Fd) -> bool {
    // As in `own_page`.
    let _blocked = SignalsBlocked::begin();
    // A holder inside a segment stays as long as no segment is unmapped.
    let Some(turn) = links::keep_all() else {
        return false;
    };
    let Some(holder) = table::holder(fd) else {
        return true; // Another thread was faster.
    };
    let floors = core::iter::successors(Some(floor()), |at| Some(at / 2).filter(|at| *at >= 8));
    let copy = |floor| sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, floor).ok();
    let Some(copy) = floors.into_iter().find_map(copy) else {
        return false;
    };
    table::hide(copy, holder);
    let order = (Ordering::SeqCst, Ordering::Relaxed);
    if holder.compare_exchange(fd, copy, order.0, order.1).is_err() {
        unhide_and_close(copy);
        return false;
    }
    thread_bells::moved(holder);
    drop(turn);
    if !thread::alone() {
        // Another thread may have loaded the number, and must not use the application's file.
        let _ = sys::ppoll(&mut [], Some(kernel::timespec(LOADED_NS)));
    }
    unhide_and_close(fd);
    true
}

/// Longest time between the load of a number and its use in a system call, where no thread is
/// kept from running for longer.
const LOADED_NS: u64 = 10_000_000;

/// Whether the caller runs in the process that the records describe, and not in a vfork child,
/// which shares our memory but has its own descriptors.
pub(crate) fn in_own_process() -> bool {
    // A sandbox may forbid getpid(2), and programs rarely call vfork inside a sandbox.
    SANDBOXED.load(Ordering::Relaxed) || sys::getpid() == CHANGED.pid.load(Ordering::Relaxed)
}

/// Lowest number for the library's own descriptors under the present limit. Programs lower their
/// limit at run time (memcached does), and the kernel gives no number above it.
pub(crate) fn floor() -> usize {
    // Above what select(2) can name, but not so high that the kernel's table for this process
    // becomes large: its size is copied at every fork.
    let soft = usize::try_from(process::descriptor_limit()).unwrap_or(usize::MAX);
    soft.saturating_sub(128).max(soft / 2).min(libc::FD_SETSIZE)
}

/// Messages before a connection is worth a channel.
pub(crate) fn evidence() -> u32 {
    EVIDENCE.load(Ordering::Relaxed)
}

/// Logarithm of the largest ring's capacity in bytes.
pub(crate) fn max_shift() -> u32 {
    MAX_SHIFT.load(Ordering::Relaxed)
}

/// Longest spin in microseconds.
pub(crate) fn spin_us() -> u64 {
    SPIN_US.load(Ordering::Relaxed)
}

/// The sock_diag socket, opened at its first use. The caller has the turn to use it.
fn diag() -> Sys<Fd> {
    let fd = DIAG.load(Ordering::Acquire);
    if fd >= 0 {
        return Ok(fd);
    }
    let fd = diag::open(floor())?;
    keep(&DIAG, fd);
    Ok(fd)
}

/// Asks the kernel about one connection. One request at a time: threads share the socket, and an
/// answer does not identify its request.
pub(crate) fn look_up(tuple: &Tuple) -> Sys<SocketInfo> {
    static ASKING: Lock = Lock::new();
    // As in `own_page`.
    let _blocked = SignalsBlocked::begin();
    let _turn = ASKING.lock().ok_or(Errno(libc::EAGAIN))?;
    let fd = diag()?;
    let answer = diag::lookup(fd, tuple);
    if matches!(answer, Err(Errno(libc::EBADF | libc::ENOTSOCK))) {
        // The application closed the number by a system call without a hook, and the number may
        // refer to another file by now. The next request uses a new socket.
        DIAG.store(-1, Ordering::Release);
        table::clear(fd);
    }
    answer
}

/// Opens the socket for ringing bells, if necessary.
pub(crate) fn open_ringer() -> Sys<()> {
    RINGER.open(floor())?;
    table::hide(RINGER.fd(), RINGER.holder());
    Ok(())
}

/// Rings a bell and counts it.
pub(crate) fn ring(bell: u64) {
    header().rings.fetch_add(1, Ordering::Relaxed);
    if RINGER.fd() < 0 {
        let _ = open_ringer(); // A forked child's first ring. Without a socket no bell rings.
    }
    if let Err(lost) = RINGER.ring(bell) {
        // Closed by the application, as above. The peer must be woken all the same.
        table::clear(lost);
        header().count_failure(Reason::HiddenDescriptorLost);
        if open_ringer().is_ok() {
            let _ = RINGER.ring(bell);
        }
    }
}

fn page() -> Option<&'static StatusPage> {
    let parents = CHANGED.parents_page.load(Ordering::Acquire);
    PAGE.get().filter(|_| !parents)
}

pub(crate) fn header() -> &'static Header {
    static INERT: StatusPage = StatusPage::inert();
    page().unwrap_or(&INERT).header()
}

/// The status page's entry for a descriptor, if there is one.
pub(crate) fn entry(fd: Fd) -> Option<&'static Entry> {
    page().and_then(|p| p.entry(fd))
}

/// Shows a new connection.
pub(crate) fn show_new(fd: Fd) {
    own_page();
    if let Some(e) = entry(fd) {
        e.begin(State::Tracked, Reason::NotEnoughMessages);
    }
}

/// Shows a descriptor's state.
pub(crate) fn show(fd: Fd, state: State, reason: Reason) {
    own_page();
    if let Some(e) = entry(fd) {
        e.set(state, reason);
    }
}
