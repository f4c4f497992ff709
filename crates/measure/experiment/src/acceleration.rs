//! The question whether a process is accelerated, for runs under Saiga to prove it.
//!
//! Deliberately absent: how it is answered. Measuring knows no library.

/// What a process says about its accelerated connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceleration {
    /// Connections that were moved into channels since it started.
    pub upgraded_sockets: u64,
    /// Bytes through the channels of its open connections, both ways.
    pub channel_bytes: u64,
    /// Bytes that its open connections moved by TCP, both ways.
    pub tcp_bytes: u64,
}

/// Asks a running process of an arm under Saiga whether it is accelerated.
pub trait AccelerationProbe {
    /// What process `pid` says, which has at most `clients` connections.
    ///
    /// # Errors
    /// Why it cannot be asked, for people.
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String>;
}
