//! Settings of a stack.

use saiga_wire::offload::Fill;

/// Settings of a stack. [`Default`] suits a host of its own on a device without offloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Settings of TCP. The segment size follows from the MTU of each interface instead of `mss`.
    pub tcp: saiga_tcp::Config,
    /// Most connections, those in handshakes and in TIME-WAIT included; at most 2^31.
    pub most_connections: u32,
    /// Most connections in TIME-WAIT; the oldest gives way (`tcp_max_tw_buckets`).
    pub most_time_wait: u32,
    /// Most neighbours (`gc_thresh3`).
    pub most_neighbours: u32,
    /// Who finds the MAC addresses of neighbours.
    pub resolver: Resolver,
    /// Whether the kernel answers at the addresses, too.
    pub presence: Presence,
    /// What the device does with segments.
    pub offload: Offload,
}

/// Who finds the MAC addresses of neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// The stack, by ARP and neighbour discovery.
    Stack,
    /// The owner, by [`Stack::poll_unresolved`](crate::Stack::poll_unresolved) and
    /// [`Stack::set_neighbour`](crate::Stack::set_neighbour): the stack does not receive the
    /// answers, because the kernel has the interface.
    Owner,
}

/// Which stacks answer at the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The stack alone: it answers ARP, neighbour solicitations and echo requests, and refuses what
    /// nothing serves.
    Alone,
    /// The kernel, too: the stack takes its own connections and listeners, and hands all other
    /// frames back.
    BesideKernel,
}

/// What a device does with the segments that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// What the checksum field of a segment holds.
    pub checksum: Fill,
    /// The largest super-segment that the device divides; `None` if it divides none.
    pub segmentation: Option<Segmentation>,
}

/// Division of super-segments by the device (TSO).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// What the checksum field of a super-segment holds.
    pub checksum: Fill,
    /// Most bytes of payload, at most 65,000.
    pub most_bytes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tcp: saiga_tcp::Config::default(),
            most_connections: 65_536,
            most_time_wait: 32_768,
            most_neighbours: 1_024,
            resolver: Resolver::Stack,
            presence: Presence::Alone,
            offload: Offload {
                checksum: Fill::Checksum,
                segmentation: None,
            },
        }
    }
}
