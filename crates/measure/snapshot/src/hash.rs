//! BLAKE3 hashes of pieces of files and of whole snapshots.
//!
//! A restore does not write a piece whose hash is equal, so the hash must be collision resistant
//! even for chosen content. With BLAKE3 one core hashes faster than disks read (docs/snapshot.md).
//! Files are hashed in pieces, so that a restore writes only the pieces that a run changed.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Bytes per piece; the last piece of a file may be shorter.
pub(crate) const PIECE: u64 = 1 << 20;

/// The BLAKE3 hash of a piece or of a list of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// The hash of `len` zeros, which is the hash of a hole.
    pub(crate) fn of_zeros(len: usize) -> Self {
        static WHOLE: OnceLock<Hash> = OnceLock::new();
        let compute = || Self::of(&vec![0; len]);
        if u64::try_from(len) == Ok(PIECE) {
            *WHOLE.get_or_init(compute)
        } else {
            compute()
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl FromStr for Hash {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(hash.into()))
    }
}

/// Number of pieces of a file of `size` bytes.
pub(crate) fn pieces_of(size: u64) -> u64 {
    size.div_ceil(PIECE)
}

/// Offset and length of piece `index` in a file of `size` bytes.
pub(crate) fn piece_range(index: u64, size: u64) -> (u64, usize) {
    let offset = index.saturating_mul(PIECE);
    let len = size.saturating_sub(offset).min(PIECE);
    // At most PIECE, which fits every usize that Linux has.
    (offset, usize::try_from(len).unwrap_or(0))
}

/// A hash over a list of fields. Each field is preceded by its length, so that different lists have
/// different inputs.
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(blake3::Hasher::new())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub(crate) fn finish(&self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The empty input of BLAKE3's published test vectors.
    #[test]
    fn the_empty_input_has_the_published_hash() {
        let published = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Hash::of(b"").to_string(), published);
        assert_eq!(published.parse::<Hash>().unwrap(), Hash::of(b""));
    }

    #[test]
    fn a_hole_has_the_hash_of_zeros() {
        for len in [0, 1, 4096, 1 << 20] {
            assert_eq!(Hash::of_zeros(len), Hash::of(&vec![0; len]), "{len}");
        }
    }

    #[test]
    fn pieces_cover_a_file() {
        for (size, count, last) in [
            (0, 0, (0, 0)),
            (1, 1, (0, 1)),
            (1 << 20, 1, (0, 1 << 20)),
            ((1 << 20) + 7, 2, (1 << 20, 7)),
        ] {
            assert_eq!(pieces_of(size), count, "{size}");
            assert_eq!(piece_range(count.saturating_sub(1), size), last, "{size}");
        }
    }

    /// Without lengths, "ab" + "c" would have the hash of "a" + "bc".
    #[test]
    fn the_hash_depends_on_the_limits_of_fields() {
        let one = Digest::new().bytes(b"ab").bytes(b"c").finish();
        let other = Digest::new().bytes(b"a").bytes(b"bc").finish();
        assert_ne!(one, other);
    }
}
