//! Two hosts of the same kind that exchange frames in memory.

/// Bytes of a request and of its response.
pub(crate) const REQUEST: usize = 100;
/// The same for calls that count in 32 bits.
pub(crate) const REQUEST_BYTES: u32 = 100;

/// What the device between the hosts does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Segments of 1,460 bytes, whose checksums the hosts form and verify.
    Segments,
    /// Segments of up to 64 KiB, whose checksums the device forms and verifies.
    SuperSegments,
}

/// Two hosts: a client and a server that echoes requests.
pub(crate) trait Pair {
    /// Opens connections until there are `count`.
    fn open(&mut self, count: usize);

    /// Sends a request on each of these connections, and returns when all responses were read.
    fn exchange(&mut self, connections: &[usize]);

    /// Sends bytes on the first connection, and returns when the server has read them.
    fn stream(&mut self, bytes: usize);

    /// Opens and closes `count` connections, one after the other; returns `count`.
    fn churn(&mut self, count: usize) -> u64;

    /// Frames that both hosts have sent and received so far.
    fn segments(&self) -> u64;
}
