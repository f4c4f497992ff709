//! A safe wrapper for the regular expressions of the C library (`man 3 regcomp`).

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

/// A POSIX extended regular expression in which `.`, `[^...]`, `^` and `$` respect line ends
/// (`REG_NEWLINE`).
///
/// It matches bytes, as in the C locale: this process never calls `setlocale`. The `regex_t` is
/// boxed because POSIX does not define the behaviour of a copy.
pub(crate) struct Regex(Box<libc::regex_t>);

// SAFETY: regcomp allocates on the heap shared by all threads, so any thread may use and free it.
unsafe impl Send for Regex {}
// SAFETY: a shared expression is only passed to regexec, which is MT-Safe: it locks its own state.
unsafe impl Sync for Regex {}

impl Regex {
    /// Compiles `expression`; fails with the message of regerror.
    pub(crate) fn new(expression: &CStr) -> Result<Self, String> {
        let mut compiled = Box::<libc::regex_t>::new_uninit();
        let flags = libc::REG_EXTENDED | libc::REG_NEWLINE | libc::REG_NOSUB;
        // SAFETY: regcomp reads one C string and writes one regex_t; both pointers are valid for
        // that.
        let status = unsafe { libc::regcomp(compiled.as_mut_ptr(), expression.as_ptr(), flags) };
        if status == 0 {
            // SAFETY: regcomp returned 0, so it has initialised the regex_t.
            return Ok(Self(unsafe { compiled.assume_init() }));
        }
        let mut message = [0_u8; 256];
        let room: *mut c_char = message.as_mut_ptr().cast();
        // SAFETY: regerror takes the regex_t of the failed regcomp, and writes at most `len` bytes,
        // with a NUL at the end.
        unsafe { libc::regerror(status, compiled.as_ptr(), room, message.len()) };
        let message = CStr::from_bytes_until_nul(&message).unwrap_or_default();
        Err(message.to_string_lossy().into_owned())
    }

    /// Whether the expression matches anywhere in `text`; `false` if regexec runs out of memory.
    pub(crate) fn is_match(&self, text: &CStr) -> bool {
        // SAFETY: the expression was compiled, `text` ends with NUL, and no matches are stored (0).
        unsafe { libc::regexec(&raw const *self.0, text.as_ptr(), 0, ptr::null_mut(), 0) == 0 }
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: regcomp initialised it, and nothing uses it after this.
        unsafe { libc::regfree(&raw mut *self.0) };
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Regex")
    }
}
