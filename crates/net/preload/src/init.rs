//! The library's constructor and destructor: collects the facts of the process and starts the
//! socket layer.

#![expect(unsafe_code, reason = "runs before main with what the loader passes")]

use crate::symbols::next;
use core::ffi::{CStr, c_char, c_int, c_void};
use saiga_socket::Start;
use saiga_socket::fork;

/// Run by the loader when the library is mapped, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = construct;

/// Run at `exit(3)`, after the program's own handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destruct;

extern "C" fn destruct() {
    saiga_socket::before_exit();
}

unsafe extern "C" fn wait(
    fds: *mut libc::pollfd,
    n: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    // SAFETY: forwarded from our caller.
    unsafe { next::ppoll(fds, n, timeout, mask) }
}

extern "C" fn construct(argc: c_int, argv: *const *const c_char, _envp: *const *const c_char) {
    let mut path = [0u8; 4096];
    let program = program_name(&mut path);
    let named = std::env::var_os("GAZELLE_BIND_PROCNAME");
    let named = named.as_deref().map(std::os::unix::ffi::OsStrExt::as_bytes);
    // SAFETY: a terminated name.
    let single = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    saiga_socket::start(&Start {
        ppoll: wait,
        single_threaded: single.cast(),
        program,
        invoked_as: invoked_as(argc, argv),
        bound_program: is_lstack().then_some(named),
        missing: missing_symbol(),
    });
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
}

extern "C" fn before_fork() {
    fork::prepare();
}

extern "C" fn in_parent() {
    fork::parent();
}

extern "C" fn in_child() {
    fork::child();
}

/// Base name of `argv[0]`; empty if there is none, or the loader passes no arguments.
fn invoked_as<'a>(argc: c_int, argv: *const *const c_char) -> &'a [u8] {
    if argc < 1 || argv.is_null() {
        return &[];
    }
    // SAFETY: glibc passes the process's arguments to constructors; there is at least one.
    let first = unsafe { argv.read() };
    if first.is_null() {
        return &[];
    }
    // SAFETY: a terminated string that lives as long as the process.
    let name = unsafe { CStr::from_ptr(first) }.to_bytes();
    name.rsplit(|b| *b == b'/').next().unwrap_or(&[])
}

/// Base name of the executable; empty if `/proc` cannot be read.
fn program_name(path: &mut [u8]) -> &[u8] {
    // SAFETY: writes at most the slice's length.
    let n = unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            path.as_mut_ptr().cast(),
            path.len(),
        )
    };
    let whole = path.get(..usize::try_from(n).unwrap_or(0)).unwrap_or(&[]);
    whole.rsplit(|b| *b == b'/').next().unwrap_or(&[])
}

/// Whether the library was loaded under Gazelle's name.
fn is_lstack() -> bool {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let me = construct as *const c_void;
    // SAFETY: `info` is writable; the address is in this library.
    if unsafe { libc::dladdr(me, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's name of the library, terminated.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    name.rsplit(|b| *b == b'/')
        .next()
        .is_some_and(|base| base.starts_with(b"liblstack.so"))
}

/// The name of a function that every upgrade needs and libc lacks, if any.
fn missing_symbol() -> Option<&'static str> {
    let needed = [c"ppoll", c"epoll_pwait", c"recvmsg", c"sendmsg", c"close"];
    let absent = needed.into_iter().find(|name| {
        // SAFETY: a terminated name.
        unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.is_null()
    })?;
    absent.to_str().ok()
}
