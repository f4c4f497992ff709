//! Errors of emission.

use core::{error, fmt};

/// Why a packet cannot be emitted. The content of the buffer is unspecified after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitError {
    /// The buffer is shorter than the packet.
    BufferTooSmall {
        /// Bytes that the packet needs.
        needed: usize,
    },
    /// A length field of 16 bits cannot hold the length of the packet.
    PacketTooLong {
        /// Value that does not fit into the field.
        length: usize,
    },
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed } => write!(f, "the packet needs {needed} bytes"),
            Self::PacketTooLong { length } => {
                write!(f, "{length} bytes exceed an IP packet's length field")
            }
        }
    }
}

impl error::Error for EmitError {}

/// The first `needed` bytes of `buffer`.
#[inline]
pub(crate) fn room(buffer: &mut [u8], needed: usize) -> Result<&mut [u8], EmitError> {
    buffer
        .get_mut(..needed)
        .ok_or(EmitError::BufferTooSmall { needed })
}

/// The first `N` bytes of `buffer` as an array.
#[inline]
pub(crate) fn room_for<const N: usize>(buffer: &mut [u8]) -> Result<&mut [u8; N], EmitError> {
    buffer
        .first_chunk_mut()
        .ok_or(EmitError::BufferTooSmall { needed: N })
}

/// `length` as the value of a length field.
#[inline]
pub(crate) fn length_field(length: usize) -> Result<u16, EmitError> {
    u16::try_from(length).map_err(|_| EmitError::PacketTooLong { length })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::EmitError;
    use std::string::ToString;

    #[test]
    fn errors_say_how_long_the_packet_is() {
        let small = EmitError::BufferTooSmall { needed: 54 };
        assert_eq!(small.to_string(), "the packet needs 54 bytes");
        let long = EmitError::PacketTooLong { length: 70_000 };
        assert_eq!(
            long.to_string(),
            "70000 bytes exceed an IP packet's length field"
        );
    }
}
