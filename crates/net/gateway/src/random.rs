//! Random numbers of the kernel.

use std::io;

/// A key of 128 random bits.
///
/// # Errors
/// Those of getrandom(2).
pub(crate) fn key() -> io::Result<[u64; 2]> {
    let mut words = [0; 2];
    for word in &mut words {
        *word = getrandom::u64()?;
    }
    Ok(words)
}
