//! The offset of the local time zone from UTC.

#![expect(unsafe_code, reason = "localtime_r")]

/// Seconds by which local time is ahead of UTC at `unix_s`, in seconds since 1970; 0 if unknown.
pub(crate) fn offset_s(unix_s: i64) -> i64 {
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live values; localtime_r keeps none of them.
    let filled = unsafe { libc::localtime_r(&raw const unix_s, parts.as_mut_ptr()) };
    if filled.is_null() {
        return 0;
    }
    // SAFETY: localtime_r has filled it, and zeroes are a valid value of all its fields anyway.
    let parts = unsafe { parts.assume_init() };
    parts.tm_gmtoff
}
