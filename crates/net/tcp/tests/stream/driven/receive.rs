//! The receive buffer of the connection: which bytes are there.

use std::collections::VecDeque;

use saiga_tcp::Place;

/// The receive buffer from the first unread byte: which bytes are there.
#[derive(Debug, Default)]
pub(super) struct Receive {
    pub(super) size: u32,
    pub(super) bytes: VecDeque<bool>,
    pub(super) readable: u32,
}

/// Notes the bytes of a payload.
pub(super) struct Note<'a> {
    pub(super) receive: &'a mut Receive,
    pub(super) length: u32,
}

impl Place for Note<'_> {
    fn place(&mut self, from: u32, to: u32, length: u32) {
        assert!(
            length > 0 && from + length <= self.length,
            "not in the payload"
        );
        let end = to + length;
        assert!(end <= self.receive.size, "{end} is behind the buffer");
        let bytes = &mut self.receive.bytes;
        if bytes.len() < end as usize {
            bytes.resize(end as usize, false);
        }
        for byte in bytes.range_mut(to as usize..end as usize) {
            assert!(!*byte, "a byte was placed twice");
            *byte = true;
        }
    }
}
