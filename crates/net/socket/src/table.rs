//! The record behind each descriptor number of this process.
//!
//! One word per number in a reserved range: 0 for a descriptor that the library does not track,
//! else a record's address with a tag in its low bits. Numbers beyond the range are never tracked.

#![expect(
    unsafe_code,
    reason = "indexes a mapped range; turns words into records"
)]

use crate::epoll::EpollSet;
use crate::reserve::Reserve;
use crate::sock::Socket;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use saiga_channel::sys::Fd;

/// Descriptor numbers that the table covers.
const NUMBERS: usize = 1 << 20;
const WORD: usize = size_of::<AtomicUsize>();
const TAG: usize = 3;
const TAG_EPOLL: usize = 1;
const TAG_HIDDEN: usize = 2;

/// Words of the table, accessible up to the highest number that was ever tracked.
static TABLE: Reserve = Reserve::new();

/// Highest number that was ever tracked.
static HIGHEST: AtomicI32 = AtomicI32::new(0);

/// The meaning of a descriptor number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    /// Not tracked.
    Unknown,
    /// A socket that has, or may get, a channel.
    Socket(&'static Socket),
    /// An epoll set.
    Epoll(&'static EpollSet),
    /// One of the library's own descriptors: for the application it does not exist.
    Hidden,
}

/// Maps the table. False when memory is short: then no descriptor is ever tracked.
pub(crate) fn init() -> bool {
    TABLE.begin(NUMBERS * WORD)
}

#[inline]
fn word(fd: Fd) -> Option<&'static AtomicUsize> {
    let index = usize::try_from(fd).ok()?;
    if index >= TABLE.open() / WORD {
        return None;
    }
    // SAFETY: the index lies within the accessible part of the table.
    let at = unsafe { TABLE.at().cast::<AtomicUsize>().add(index) };
    // SAFETY: the table is never unmapped; zeroed words are valid.
    Some(unsafe { &*at })
}

/// The word of a number that is about to be tracked. `None` if the number is beyond the table, or
/// there is no memory for its word.
fn new_word(fd: Fd) -> Option<&'static AtomicUsize> {
    let index = usize::try_from(fd).ok().filter(|index| *index < NUMBERS)?;
    if !TABLE.reach((index + 1) * WORD) {
        return None;
    }
    note_highest(fd);
    word(fd)
}

fn decode(word: usize) -> Entry {
    let address = word & !TAG;
    match word & TAG {
        0 if word == 0 => Entry::Unknown,
        // SAFETY: only `set_socket` stores untagged words: addresses of pool records.
        0 => Entry::Socket(unsafe { &*core::ptr::with_exposed_provenance(address) }),
        // SAFETY: only `set_epoll` stores this tag.
        TAG_EPOLL => Entry::Epoll(unsafe { &*core::ptr::with_exposed_provenance(address) }),
        _ => Entry::Hidden,
    }
}

/// The entry of a number.
pub(crate) fn get(fd: Fd) -> Entry {
    word(fd).map_or(Entry::Unknown, |w| decode(w.load(Ordering::Acquire)))
}

/// The socket behind a number, if it is tracked. The hot path of every hook.
#[inline]
pub(crate) fn socket(fd: Fd) -> Option<&'static Socket> {
    match get(fd) {
        Entry::Socket(s) => Some(s),
        Entry::Unknown | Entry::Epoll(_) | Entry::Hidden => None,
    }
}

fn note_highest(fd: Fd) {
    if fd > HIGHEST.load(Ordering::Relaxed) {
        HIGHEST.fetch_max(fd, Ordering::Relaxed);
    }
}

/// Highest number that was ever tracked; iterations over the table end there.
pub(crate) fn highest() -> usize {
    usize::try_from(HIGHEST.load(Ordering::Relaxed)).unwrap_or(0)
}

fn swap(fd: Fd, value: usize) -> Entry {
    word(fd).map_or(Entry::Unknown, |w| decode(w.swap(value, Ordering::AcqRel)))
}

/// Makes a number refer to a socket. False if the number is beyond the table, or there is no memory
/// for its word.
pub(crate) fn set_socket(fd: Fd, socket: &'static Socket) -> bool {
    let address = core::ptr::from_ref(socket).expose_provenance();
    new_word(fd)
        .map(|w| w.store(address, Ordering::Release))
        .is_some()
}

/// Makes a number refer to an epoll set. False if the number is beyond the table, or there is no
/// memory for its word.
pub(crate) fn set_epoll(fd: Fd, set: &'static EpollSet) -> bool {
    let address = core::ptr::from_ref(set).expose_provenance();
    new_word(fd)
        .map(|w| w.store(address | TAG_EPOLL, Ordering::Release))
        .is_some()
}

/// Some descriptor of a connection. Searches the whole table, for rare needs.
pub(crate) fn any_of(socket: &Socket) -> Option<Fd> {
    let top = HIGHEST.load(Ordering::Relaxed);
    (0..=top).find(|fd| matches!(get(*fd), Entry::Socket(s) if s == socket))
}

/// Marks a descriptor as the library's own. `holder` is the word that has its number.
pub(crate) fn hide(fd: Fd, holder: &'static AtomicI32) {
    if let Some(word) = new_word(fd) {
        let address = core::ptr::from_ref(holder).expose_provenance();
        word.swap(address | TAG_HIDDEN, Ordering::AcqRel);
    }
}

/// The word that has the number of one of the library's own descriptors.
pub(crate) fn holder(fd: Fd) -> Option<&'static AtomicI32> {
    let word = word(fd)?.load(Ordering::Acquire);
    // SAFETY: only `hide` stores this tag, and the record around the word is never unmapped.
    (word & TAG == TAG_HIDDEN).then(|| unsafe { &*core::ptr::with_exposed_provenance(word & !TAG) })
}

/// Clears a number and returns its former entry.
pub(crate) fn clear(fd: Fd) -> Entry {
    swap(fd, 0)
}

/// Highest number plus one that the table covers.
pub(crate) fn numbers() -> usize {
    if TABLE.at().is_null() { 0 } else { NUMBERS }
}
