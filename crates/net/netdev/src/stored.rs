//! A frame that has left the memory of its device.

use saiga_wire::offload::complete;
use saiga_wire::virtio::Header;

use crate::device::Frame;

/// A frame with memory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) offload: Header,
}

impl Stored {
    pub(crate) fn of(frame: &Frame<'_>) -> Self {
        Self {
            bytes: frame.bytes.to_vec(),
            offload: frame.offload,
        }
    }

    pub(crate) fn frame(&self) -> Frame<'_> {
        Frame {
            bytes: &self.bytes,
            offload: self.offload,
        }
    }
}

/// Forms the checksum that the sender left open. A place outside the frame is ignored.
pub(crate) fn close_checksum(bytes: &mut [u8], offload: &Header) {
    if let Some(place) = offload.checksum {
        // The frame stays as it is, so that a capture shows what was wrong.
        let _outside = complete(bytes, place.start.into(), place.offset.into());
    }
}
