//! Objects whose waits pass by the hooks, because they were loaded with RTLD_DEEPBIND (as PHP loads
//! its extensions) or into a namespace of their own: libc precedes the hooks in their scope.
//!
//! Such a wait on a channel would not end. So every connection goes back to TCP before such an
//! object is loaded, and no connection is upgraded while a loaded one imports a function that waits
//! and has another address for it than that of the hook. Each object loaded after the first one
//! with RTLD_DEEPBIND is examined, because the loader does not tell how an object was loaded.

#![expect(unsafe_code, reason = "reads the tables of loaded objects")]

use crate::api::{known, lookup};
use crate::{clock, rt, table};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use libc::dl_phdr_info;
use saiga_channel::sys::Fd;
use saiga_status::Reason;

/// Functions that wait for a connection.
const WAITS: [&[u8]; 13] = [
    b"poll",
    b"__poll",
    b"__poll_chk",
    b"ppoll",
    b"__ppoll_chk",
    b"select",
    b"__select",
    b"pselect",
    b"epoll_wait",
    b"epoll_pwait",
    b"epoll_pwait2",
    b"recv",
    b"__recv_chk",
];
/// Longest time in which a load makes its object known.
const LOAD_NS: u64 = 10_000_000_000;

/// Number of objects before the first such load; `u64::MAX`: there was none.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
/// Objects ever loaded, as of the start of the last such load, and that time (CLOCK_MONOTONIC, ns).
static BEFORE: AtomicU64 = AtomicU64::new(0);
static BEGAN_NS: AtomicU64 = AtomicU64::new(0);
/// Objects ever loaded, as of the last examination, and its result.
static EXAMINED: AtomicU64 = AtomicU64::new(0);
static FOUND: AtomicBool = AtomicBool::new(false);
/// Whether an object was loaded into another namespace, where it cannot be examined.
static APART: AtomicBool = AtomicBool::new(false);

/// Before an object is loaded with RTLD_DEEPBIND, or (`apart`) into another namespace.
pub fn loading(apart: bool) {
    if !rt::in_own_process() {
        return; // A vfork child shares its parent's memory for a moment only.
    }
    APART.fetch_or(apart, Ordering::SeqCst);
    let objects = Objects::walk(u64::MAX);
    BEFORE.store(objects.ever, Ordering::SeqCst);
    BEGAN_NS.store(clock::monotonic_ns(), Ordering::SeqCst);
    FIRST.fetch_min(objects.count, Ordering::SeqCst);
    for fd in known(0, Fd::MAX) {
        let in_use =
            table::socket(fd).is_some_and(|s| s.is_bound() || s.phase.get().is_under_way());
        if let Some(handle) = lookup(fd).filter(|_| in_use) {
            handle.stay_on_tcp(fd, Reason::DeepBound);
        }
    }
}

/// Whether a wait may pass by the hooks.
pub(crate) fn is_in_the_way() -> bool {
    let first = FIRST.load(Ordering::SeqCst);
    if first == u64::MAX {
        return false;
    }
    let ever = Objects::walk(u64::MAX).ever;
    if EXAMINED.load(Ordering::Relaxed) != ever {
        FOUND.store(Objects::walk(first).waits, Ordering::Relaxed);
        EXAMINED.store(ever, Ordering::Relaxed);
    }
    let since = || clock::monotonic_ns().saturating_sub(BEGAN_NS.load(Ordering::SeqCst));
    let under_way = ever == BEFORE.load(Ordering::SeqCst) && since() < LOAD_NS;
    under_way || FOUND.load(Ordering::Relaxed) || APART.load(Ordering::Relaxed)
}

/// What a walk over the loaded objects has found.
struct Objects {
    /// Objects before this number are not examined.
    first: u64,
    count: u64,
    ever: u64,
    /// Addresses of this library.
    own: (usize, usize),
    /// Whether an examined object has a wait that is not a hook.
    waits: bool,
}

impl Objects {
    fn walk(first: u64) -> Objects {
        let mut objects = Objects {
            first,
            count: 0,
            ever: 0,
            own: (0, 0),
            waits: false,
        };
        let data = core::ptr::from_mut(&mut objects).cast();
        // SAFETY: `data` outlives the call, which passes it to `visit` alone.
        unsafe { libc::dl_iterate_phdr(Some(visit), data) };
        objects
    }

    /// # Safety
    /// The object is loaded, and stays so.
    unsafe fn examine(&mut self, info: &dl_phdr_info) {
        let base = usize::try_from(info.dlpi_addr).unwrap_or(0);
        // SAFETY: the loader's array of program headers.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let at = |header: &libc::Elf64_Phdr| base + usize::try_from(header.p_vaddr).unwrap_or(0);
        let size = |header: &libc::Elf64_Phdr| usize::try_from(header.p_memsz).unwrap_or(0);
        let here = visit as *const c_void as usize;
        let mut parts = headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        if let Some(code) = parts.find(|h| (at(h)..at(h) + size(h)).contains(&here)) {
            self.own = (at(code), at(code) + size(code));
        }
        let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC);
        if let Some(dynamic) = dynamic.filter(|_| self.count >= self.first) {
            // SAFETY: promised by our caller.
            self.waits |= unsafe { self.has_waits(base, at(dynamic)) };
        }
    }

    /// Whether the object at `base` has another address for a wait than a hook's. An address that
    /// is not known before the first call counts as another one.
    ///
    /// # Safety
    /// The object is loaded, and `dynamic` is its dynamic section.
    unsafe fn has_waits(&self, base: usize, dynamic: usize) -> bool {
        // SAFETY: the section ends with an entry of zeros, at which the reader stops.
        let entries = (dynamic..)
            .step_by(16)
            .map(|at| unsafe { read::<[usize; 2]>(at) });
        let mut tables = [0; 24];
        for [tag, value] in entries.take_while(|[tag, _]| *tag != 0) {
            if let Some(entry) = tables.get_mut(tag) {
                *entry = value;
            }
        }
        // The loader has relocated addresses where it can write.
        let address = |tag: usize| {
            if tables[tag] < base {
                base + tables[tag]
            } else {
                tables[tag]
            }
        };
        let (names, symbols) = (address(DT_STRTAB), address(DT_SYMTAB));
        let lists = [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)];
        let mut slots = lists
            .into_iter()
            .flat_map(|(list, bytes)| (0..tables[bytes] / 24).map(move |n| address(list) + n * 24));
        slots.any(|slot| {
            // SAFETY: the entry lies within the list's size: offset, and symbol above the type.
            let [offset, info] = unsafe { read::<[usize; 2]>(slot) };
            let symbol = symbols + (info >> 32) * 24;
            // SAFETY: relocations name symbols of the table; 0 names the empty one.
            let name = names + unsafe { read::<u32>(symbol) } as usize;
            // SAFETY: a terminated string of the table.
            let name = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(name)) };
            if !WAITS.contains(&name.to_bytes()) {
                return false;
            }
            // SAFETY: the relocated word of the object.
            let bound_to = unsafe { read::<usize>(base + offset) };
            !(self.own.0..self.own.1).contains(&bound_to)
        })
    }
}

// Entries of a dynamic section (the generic ELF ABI).
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_JMPREL: usize = 23;

/// # Safety
/// A `T` can be read at `at`, and every content is valid for it.
unsafe fn read<T>(at: usize) -> T {
    let at: *const T = core::ptr::with_exposed_provenance(at);
    // SAFETY: promised by our caller.
    unsafe { at.read_unaligned() }
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `walk` passes its own value.
    let objects = unsafe { &mut *data.cast::<Objects>() };
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: the loader unloads nothing during the walk.
    unsafe { objects.examine(info) };
    objects.count += 1;
    objects.ever = info.dlpi_adds;
    0
}
