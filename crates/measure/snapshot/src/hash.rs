//! Fingerprints: BLAKE3, of pieces of files and of whole snapshots.
//!
//! Why BLAKE3: "the same fingerprint, so it need not be written" must be a proof also when
//! somebody chose the bytes, and one core hashes faster than disks read (docs/snapshot.md).
//! Files are cut into pieces so that a restore writes only the pieces that a run changed.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Bytes of a piece; the last one of a file may be shorter.
pub(crate) const PIECE: u64 = 1 << 20;

/// A BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// The hash of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// The hash of `len` zeros: that of a hole, without reading it.
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

/// How many pieces a file of `size` bytes has.
pub(crate) fn pieces_of(size: u64) -> u64 {
    size.div_ceil(PIECE)
}

/// Where piece `index` of a file of `size` bytes lies: offset and length.
pub(crate) fn place(index: u64, size: u64) -> (u64, usize) {
    let offset = index.saturating_mul(PIECE);
    let len = size.saturating_sub(offset).min(PIECE);
    // At most PIECE, which fits every usize that Linux has.
    (offset, usize::try_from(len).unwrap_or(0))
}

/// A hash over fields, each with its length before it, so that no two lists of fields meet.
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

    /// From BLAKE3's published test vectors: the empty input.
    #[test]
    fn the_empty_input_has_the_published_hash() {
        let published = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Hash::of(b"").to_string(), published);
        assert_eq!(published.parse::<Hash>().unwrap(), Hash::of(b""));
    }

    #[test]
    fn zeros_need_not_be_read() {
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
            assert_eq!(place(count.saturating_sub(1), size), last, "{size}");
        }
    }

    /// Without lengths "ab" + "c" would be "a" + "bc".
    #[test]
    fn fields_do_not_run_together() {
        let one = Digest::new().bytes(b"ab").bytes(b"c").finish();
        let other = Digest::new().bytes(b"a").bytes(b"bc").finish();
        assert_ne!(one, other);
    }
}
