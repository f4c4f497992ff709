//! Regular expressions of the C library, `man 3 regcomp`.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

/// A POSIX extended regular expression in which `.`, `[^...]`, `^` and `$` know lines (`REG_NEWLINE`).
///
/// It reads bytes, as in the C locale: no part of this process calls `setlocale`. It stays where regcomp filled it in,
/// for POSIX does not define what a copy of a `regex_t` matches.
pub(crate) struct Regex(Box<libc::regex_t>);

// SAFETY: regcomp allocates from the heap that all threads share, so any thread may use and free what it made.
unsafe impl Send for Regex {}
// SAFETY: a shared expression is only given to regexec, which is MT-Safe: it locks the state that it keeps in there.
unsafe impl Sync for Regex {}

impl Regex {
    /// Compiles `expression`; fails with the words of regerror.
    pub(crate) fn new(expression: &CStr) -> Result<Self, String> {
        let mut compiled = Box::<libc::regex_t>::new_uninit();
        let flags = libc::REG_EXTENDED | libc::REG_NEWLINE | libc::REG_NOSUB;
        // SAFETY: regcomp reads one C string and writes one regex_t; both pointers are valid for that.
        let answer = unsafe { libc::regcomp(compiled.as_mut_ptr(), expression.as_ptr(), flags) };
        if answer == 0 {
            // SAFETY: regcomp answered 0, so it has filled the regex_t in.
            return Ok(Self(unsafe { compiled.assume_init() }));
        }
        let mut words = [0_u8; 256];
        let room: *mut c_char = words.as_mut_ptr().cast();
        // SAFETY: regerror takes what regcomp was given, and writes at most as many bytes as it is told, the last one NUL.
        unsafe { libc::regerror(answer, compiled.as_ptr(), room, words.len()) };
        let words = CStr::from_bytes_until_nul(&words).unwrap_or_default();
        Err(words.to_string_lossy().into_owned())
    }

    /// Whether it is found anywhere in `text`; not, when the C library has no memory to look.
    pub(crate) fn is_match(&self, text: &CStr) -> bool {
        // SAFETY: the expression was compiled, `text` ends with NUL, and no place of a match is asked for.
        unsafe { libc::regexec(&raw const *self.0, text.as_ptr(), 0, ptr::null_mut(), 0) == 0 }
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: regcomp filled it in, and nothing uses it after this.
        unsafe { libc::regfree(&raw mut *self.0) };
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Regex")
    }
}
