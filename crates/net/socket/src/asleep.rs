//! Records the resources that a thread holds while it sleeps in the kernel, where a frame that
//! never returns cannot lose them.
//!
//! A thread that is cancelled (`pthread_cancel`), or that leaves a signal handler by
//! `siglongjmp`, abandons our frames without running their destructors. So each frame notes its
//! resources before it sleeps. When the thread ends, a destructor of thread-specific data releases
//! them all. A jump is noticed when the thread sleeps or closes again, by the address of the
//! frame: the stack has receded behind it.
//!
//! Deliberately absent: resources that a thread holds while it computes.

#![expect(
    unsafe_code,
    reason = "thread-specific data; entries that are pointers"
)]

use crate::epoll::EpollSet;
use crate::poll::{Claim, Mapped};
use crate::pool::{Pool, Record};
use crate::sock::{Pin, Socket};
use crate::thread_bells::ThreadBell;
use crate::{epoll_wait, poll, rt, thread_bells};
use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence,
};
use saiga_channel::sys;
use syscalls::Sysno;

/// Notes for each thread. Further resources are lost if their frame is abandoned.
const NOTES: usize = 160;
/// Threads whose notes can be kept at once.
const THREADS: usize = 16_384;
/// Keys below this number need no heap memory (`PTHREAD_KEY_2NDLEVEL_SIZE` of glibc).
const CHEAP_KEYS: libc::pthread_key_t = 32;
/// A frame at most this far from a call's frame does not belong to a signal handler below it: the
/// data that the kernel puts on the stack for a handler is larger.
const SLACK: usize = 512;
const NO_KEY: libc::pthread_key_t = libc::pthread_key_t::MAX;

static POOL: Pool<ThreadNotes, THREADS> = Pool::new();
/// The thread-specific data whose destructor runs at a thread's end.
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

thread_local! {
    /// This thread's notes, if it has slept before.
    static MINE: Cell<Option<&'static ThreadNotes>> = const { Cell::new(None) };
}

/// A resource that must be released. Those of one frame are released last to first.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    /// A pin: the caller is inside the socket.
    Pin(&'static Socket),
    /// A pin on a bound socket, and its bit for a wait slot of the segment.
    Claim(&'static Socket, usize),
    /// As `Claim`, and the wait slot itself, which was claimed for this socket.
    FirstClaim(&'static Socket, usize),
    /// An array of this many claims, in memory that is noted as well.
    Claims(*const Claim, usize),
    /// As `Claims`, in a forked child: the sockets are pinned, the wait slots are the parent's.
    ParentsClaims(*const Claim, usize),
    /// The bell that the caller's thread has borrowed.
    Bell(&'static ThreadBell),
    /// Borrowed memory of a large poll.
    Memory(&'static Mapped),
    /// One count among the pollers of sockets that are not pinned.
    Polling,
    /// One count among the set's waiters, in a fork epoch.
    Waiter(&'static EpollSet, u32),
    /// One count among the set's sleepers, in a fork epoch.
    Sleeper(&'static EpollSet, u32),
}

/// One note. A signal handler may run at any moment and use the notes above this one, so a note
/// whose kind is 0 holds nothing yet.
#[derive(Debug)]
struct Note {
    kind: AtomicU32,
    number: AtomicU32,
    at: AtomicPtr<c_void>,
    frame: AtomicUsize,
}

/// The notes of one thread, innermost frame last. Only that thread accesses them.
#[derive(Debug)]
pub(crate) struct ThreadNotes {
    depth: AtomicUsize,
    notes: [Note; NOTES],
    next_free: AtomicPtr<ThreadNotes>,
}

impl Record for ThreadNotes {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

/// A frame that is about to sleep. Dropped before any resource that it has noted is released.
#[derive(Debug)]
pub(crate) struct Asleep {
    /// This thread's notes, and the number of notes that belong to outer frames.
    notes: Option<(&'static ThreadNotes, usize)>,
    /// Number of this frame's notes, and the address stored in them.
    held: Cell<usize>,
    frame: Cell<usize>,
    /// Makes the type neither `Send` nor `Sync`.
    _here: PhantomData<*const ()>,
}

impl Asleep {
    /// Begins a frame's notes. `call` lies in a frame of the same call, as far out as possible:
    /// notes of frames at lower addresses were abandoned. One call of the application has at most
    /// one `Asleep` at a time.
    #[inline]
    pub(crate) fn begin<T>(call: &T) -> Asleep {
        let mine = MINE.get().or_else(register);
        if let Some(mine) = mine.filter(|mine| mine.depth.load(Relaxed) > 0) {
            mine.give_back_abandoned(end_of(call));
        }
        Asleep {
            notes: mine.map(|mine| (mine, mine.depth.load(Relaxed))),
            held: Cell::new(0),
            frame: Cell::new(0),
            _here: PhantomData,
        }
    }

    /// Notes one more resource of the frame.
    #[inline]
    pub(crate) fn hold(&self, held: Held) {
        let Some((mine, _)) = self.notes else { return };
        if self.held.get() == 0 {
            self.frame.set(core::ptr::from_ref(self).addr());
        }
        if mine.push(held, self.frame.get()) {
            self.held.set(self.held.get() + 1);
        }
    }

    /// Ends the notes of a frame that goes on. False: the frame was taken for abandoned, as may
    /// happen where a signal handler switches stacks, and its resources were released.
    #[must_use]
    pub(crate) fn end(self) -> bool {
        self.is_intact()
    }

    #[inline]
    fn is_intact(&self) -> bool {
        self.notes.is_none_or(|(mine, before)| {
            let first = mine.notes.get(before).filter(|_| self.held.get() > 0);
            first.is_none_or(|note| {
                mine.depth.load(Relaxed) > before
                    && note.kind.load(Relaxed) != 0
                    && note.frame.load(Relaxed) == self.frame.get()
            })
        })
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        if let Some((mine, before)) = self.notes.filter(|_| self.is_intact()) {
            // Notes above these were left by a signal handler that has returned.
            while mine.depth.load(Relaxed) > before + self.held.get() {
                mine.pop_and_give_back();
            }
            mine.forget_down_to(before);
        }
    }
}

/// Notes a pin on the socket around a call that may sleep.
#[inline(never)] // The closure and the notes lie close to each other then.
pub(crate) fn inside<T>(socket: &'static Socket, call: impl FnOnce() -> T) -> T {
    let asleep = Asleep::begin(&call);
    asleep.hold(Held::Pin(socket));
    let result = call();
    if !asleep.end() {
        pin_again(socket);
    }
    result
}

/// Pins a socket again for a caller whose pin was released as abandoned.
pub(crate) fn pin_again(socket: &'static Socket) {
    core::mem::forget(socket.pin());
}

/// Makes the thread-specific data. Without it, nothing is noted.
pub(crate) fn start() {
    let mut key = NO_KEY;
    // SAFETY: `key` is writable and the destructor is never unloaded.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
    if made == 0 && key < CHEAP_KEYS {
        KEY.store(key, SeqCst);
    }
}

/// Gives the calling thread its notes. `None`: the thread's end would not be noticed.
#[cold]
fn register() -> Option<&'static ThreadNotes> {
    let key = KEY.load(Relaxed);
    // A sandbox may forbid the calls that make memory.
    if key == NO_KEY || rt::SANDBOXED.load(Relaxed) {
        return None;
    }
    let mine = POOL.take()?;
    // SAFETY: the key was made and is never deleted; a low one needs no memory.
    if unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(mine).cast()) } != 0 {
        POOL.put(mine);
        return None;
    }
    MINE.set(Some(mine));
    Some(mine)
}

/// Destructor of thread-specific data: the calling thread ends; none of our frames is left.
extern "C" fn thread_ends(_notes: *mut c_void) {
    if let Some(mine) = MINE.take() {
        while mine.depth.load(Relaxed) > 0 {
            mine.pop_and_give_back();
        }
        POOL.put(mine);
    }
}

/// Releases the resources of frames that the calling thread has jumped out of. `call` is a local
/// of the calling hook, as for [`Asleep::begin`].
pub(crate) fn release_abandoned<T>(call: &T) {
    if let Some(mine) = MINE.get().filter(|mine| mine.depth.load(Relaxed) > 0) {
        mine.give_back_abandoned(end_of(call));
    }
}

fn end_of<T>(value: &T) -> usize {
    core::ptr::from_ref(value).addr() + size_of::<T>()
}

/// In a forked child, pins the sockets noted by the forking thread's frames below a signal handler.
pub(crate) fn forked() {
    let Some(mine) = MINE.get() else { return };
    let depth = mine.depth.load(Relaxed).min(NOTES);
    for note in &mine.notes[..depth] {
        match note.held() {
            Some(Held::Pin(socket)) => pin_again(socket),
            // The wait slot is the parent's.
            Some(Held::Claim(socket, _) | Held::FirstClaim(socket, _)) => {
                note.kind.store(kind::PIN, Relaxed);
                pin_again(socket);
            }
            Some(Held::Claims(at, n) | Held::ParentsClaims(at, n)) => {
                note.kind.store(kind::PARENTS_CLAIMS, Relaxed);
                poll::sockets_of(at, n).for_each(pin_again);
            }
            Some(
                Held::Bell(_)
                | Held::Memory(_)
                | Held::Polling
                | Held::Waiter(..)
                | Held::Sleeper(..),
            )
            | None => {}
        }
    }
}

/// Numbers of the kinds of resources; 0 is none.
mod kind {
    pub(super) const PIN: u32 = 1;
    pub(super) const CLAIM: u32 = 2;
    pub(super) const FIRST_CLAIM: u32 = 3;
    pub(super) const CLAIMS: u32 = 4;
    pub(super) const BELL: u32 = 5;
    pub(super) const MEMORY: u32 = 6;
    pub(super) const POLLING: u32 = 7;
    pub(super) const WAITER: u32 = 8;
    pub(super) const SLEEPER: u32 = 9;
    pub(super) const PARENTS_CLAIMS: u32 = 10;
}

fn address<T>(record: &'static T) -> *mut c_void {
    core::ptr::from_ref(record).cast_mut().cast()
}

/// # Safety
/// `at` was made by [`address`] of the same type.
unsafe fn record<T>(at: *mut c_void) -> &'static T {
    // SAFETY: promised by our caller; pool records are never unmapped.
    unsafe { &*at.cast() }
}

impl Note {
    #[inline]
    fn write(&self, held: Held, frame: usize) {
        let small = |n: usize| u32::try_from(n).unwrap_or(0);
        let (kind, at, number) = match held {
            Held::Pin(socket) => (kind::PIN, address(socket), 0),
            Held::Claim(socket, wait_slot) => (kind::CLAIM, address(socket), small(wait_slot)),
            Held::FirstClaim(socket, wait_slot) => {
                (kind::FIRST_CLAIM, address(socket), small(wait_slot))
            }
            Held::Claims(at, n) => (kind::CLAIMS, at.cast_mut().cast(), small(n)),
            Held::ParentsClaims(at, n) => (kind::PARENTS_CLAIMS, at.cast_mut().cast(), small(n)),
            Held::Bell(bell) => (kind::BELL, address(bell), 0),
            Held::Memory(memory) => (kind::MEMORY, address(memory), 0),
            Held::Polling => (kind::POLLING, core::ptr::null_mut(), 0),
            Held::Waiter(set, epoch) => (kind::WAITER, address(set), epoch),
            Held::Sleeper(set, epoch) => (kind::SLEEPER, address(set), epoch),
        };
        self.frame.store(frame, Relaxed);
        self.at.store(at, Relaxed);
        self.number.store(number, Relaxed);
        compiler_fence(SeqCst);
        self.kind.store(kind, Relaxed);
    }

    fn held(&self) -> Option<Held> {
        let kind = self.kind.load(Relaxed);
        compiler_fence(SeqCst);
        let (at, number) = (self.at.load(Relaxed), self.number.load(Relaxed));
        let count = number as usize;
        Some(match kind {
            // SAFETY: `write` has stored a socket with these kinds.
            kind::PIN => Held::Pin(unsafe { record(at) }),
            // SAFETY: as above.
            kind::CLAIM => Held::Claim(unsafe { record(at) }, count),
            // SAFETY: as above.
            kind::FIRST_CLAIM => Held::FirstClaim(unsafe { record(at) }, count),
            kind::CLAIMS => Held::Claims(at.cast(), count),
            kind::PARENTS_CLAIMS => Held::ParentsClaims(at.cast(), count),
            // SAFETY: as above, a thread's bell.
            kind::BELL => Held::Bell(unsafe { record(at) }),
            // SAFETY: as above, memory of a large poll.
            kind::MEMORY => Held::Memory(unsafe { record(at) }),
            kind::POLLING => Held::Polling,
            // SAFETY: as above, a set.
            kind::WAITER => Held::Waiter(unsafe { record(at) }, number),
            // SAFETY: as above, a set.
            kind::SLEEPER => Held::Sleeper(unsafe { record(at) }, number),
            _ => return None,
        })
    }
}

impl ThreadNotes {
    /// False when all notes are in use.
    #[inline]
    fn push(&self, held: Held, frame: usize) -> bool {
        let depth = self.depth.load(Relaxed);
        let Some(note) = self.notes.get(depth) else {
            return false;
        };
        note.frame.store(frame, Relaxed);
        compiler_fence(SeqCst);
        self.depth.store(depth + 1, Relaxed);
        compiler_fence(SeqCst); // From here a signal handler's notes come above this one.
        note.write(held, frame);
        true
    }

    #[inline]
    fn forget_down_to(&self, before: usize) {
        let depth = self.depth.load(Relaxed).min(NOTES);
        for note in self.notes.get(before..depth).into_iter().flatten() {
            note.kind.store(0, Relaxed);
        }
        compiler_fence(SeqCst);
        self.depth.store(before, Relaxed);
    }

    /// Releases the innermost resource, once.
    fn pop_and_give_back(&self) {
        let last = self.depth.load(Relaxed).saturating_sub(1).min(NOTES - 1);
        let held = self.notes[last].held();
        self.forget_down_to(last);
        compiler_fence(SeqCst);
        if let Some(held) = held {
            give_back(held);
        }
    }

    #[cold]
    fn give_back_abandoned(&self, call: usize) {
        let Some(other) = other_stack() else {
            return; // On the stack for signals: addresses on two stacks do not compare.
        };
        loop {
            let Some(last) = self.depth.load(Relaxed).checked_sub(1) else {
                return;
            };
            let frame = self.notes[last.min(NOTES - 1)].frame.load(Relaxed);
            if frame > call.saturating_add(SLACK) && !other.contains(&frame) {
                return;
            }
            self.pop_and_give_back();
        }
    }
}

/// The thread's signal stack, which no frame is on. `None`: the caller may be on it.
fn other_stack() -> Option<core::ops::Range<usize>> {
    if rt::SANDBOXED.load(Relaxed) {
        return None; // A sandbox may forbid the call.
    }
    let mut old = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    let args = [0, &raw mut old as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one stack_t.
    unsafe { sys::call(Sysno::sigaltstack, args) }.ok()?;
    let from = old.ss_sp.addr();
    (old.ss_flags & libc::SS_ONSTACK == 0).then(|| from..from.saturating_add(old.ss_size))
}

/// Does what the abandoned frame's destructors would have done.
fn give_back(held: Held) {
    match held {
        Held::Pin(socket) => drop(Pin(socket)),
        Held::Claim(socket, wait_slot) => poll::give_back_one(socket, wait_slot, false),
        Held::FirstClaim(socket, wait_slot) => poll::give_back_one(socket, wait_slot, true),
        Held::Claims(at, n) => poll::give_back_many(at, n),
        Held::ParentsClaims(at, n) => poll::leave_many(at, n),
        Held::Bell(bell) => thread_bells::give_back(bell),
        Held::Memory(memory) => poll::put_back(memory),
        Held::Polling => poll::end_polling(),
        Held::Waiter(set, epoch) => epoll_wait::give_back_waiter(set, epoch),
        Held::Sleeper(set, epoch) => epoll_wait::give_back_sleeper(set, epoch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::hint::black_box;

    fn poll_and_hold(call: &impl Sized) -> Asleep {
        poll::begin_polling();
        let asleep = Asleep::begin(call);
        asleep.hold(Held::Polling);
        asleep
    }

    #[inline(never)]
    fn abandon() {
        let here = black_box(0u8);
        core::mem::forget(poll_and_hold(&here));
    }

    /// Calls `act` like a signal handler: below the data that the kernel saves for the handler.
    #[inline(never)]
    fn from_below(act: impl FnOnce(&u8)) {
        let frame = black_box([0u8; 4096]);
        act(&frame[0]);
        black_box(&frame);
    }

    /// One test for all cases, because they share the count of pollers.
    #[test]
    fn resources_of_an_abandoned_frame_are_released_once() {
        start();
        let call = 0u8;
        let asleep = poll_and_hold(&call);
        from_below(release_abandoned);
        assert!(poll::has_pollers(), "an outer frame is alive");
        from_below(|_| abandon());
        assert!(
            asleep.end(),
            "it returns although the frame above it was abandoned"
        );
        assert!(poll::has_pollers());
        poll::end_polling();
        assert!(!poll::has_pollers());

        abandon();
        assert!(poll::has_pollers());
        release_abandoned(&call);
        assert!(!poll::has_pollers(), "the stack has receded");

        let asleep = poll_and_hold(&call);
        if let Some(mine) = MINE.get() {
            mine.pop_and_give_back();
        }
        assert!(!asleep.end(), "taken for abandoned");
        assert!(!poll::has_pollers());

        let ended = std::thread::spawn(abandon).join();
        assert!(ended.is_ok());
        assert!(!poll::has_pollers(), "the thread has ended");
    }
}
