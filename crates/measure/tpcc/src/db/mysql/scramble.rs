//! Hashes that are sent in place of a password. They depend on the password and on random bytes of
//! the server (the salt), so a recorded hash cannot be used again.

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// `mysql_native_password`: SHA1(p) xor SHA1(salt + SHA1(SHA1(p))). Empty if there is no password.
pub(super) fn native(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let salted = Sha1::new()
        .chain_update(salt)
        .chain_update(twice)
        .finalize();
    xor(&once, &salted)
}

/// `caching_sha2_password`: SHA256(p) xor SHA256(SHA256(SHA256(p)) + salt). Empty if there is no
/// password.
pub(super) fn caching_sha2(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let salted = Sha256::new().chain_update(twice).chain_update(salt);
    xor(&once, &salted.finalize())
}

/// The password and its NUL, xor the salt, which is repeated to the same length.
pub(super) fn masked(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let ended = password.iter().chain(&[0]);
    ended.zip(salt.iter().cycle()).map(|(a, b)| a ^ b).collect()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}
