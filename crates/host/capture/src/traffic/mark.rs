//! [`Mark`]: what a reader of the results must know about the capture.

use std::{fmt, time::Duration};

/// Something that is missing in a capture, or doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The capture has no packet of a supported link.
    NoPackets,
    /// The file ends inside a record, behind this number of packets.
    CutShort { packets: u64 },
    /// A record contradicts the format; nothing behind this number of packets was read.
    Damaged { packets: u64 },
    /// Packets that carry an earlier time than one before them. Steps of microseconds are normal
    /// where several CPUs capture; the results are computed as if time had stood still.
    ClockBackwards { steps: u64, largest: Duration },
    /// Interface or operating system dropped packets while capturing.
    Dropped { packets: u64 },
    /// Bytes that their receiver acknowledged are not in the capture.
    Holes { holes: u64, bytes: u64 },
    /// The capture ends inside the headers of packets: its snap length is too small.
    CutHeaders { packets: u64 },
    /// Fragments of IP packets, which were skipped.
    Fragments { packets: u64 },
    /// Packets of an interface with another link type, which were skipped.
    OtherLink { number: u16, packets: u64 },
    /// Packets of an interface that the file does not describe.
    UnknownInterface { packets: u64 },
    /// Simple Packet Blocks, which have no time.
    WithoutTime { packets: u64 },
    /// Idle connections that made room for others. A packet of theirs begins a new connection.
    ConnectionsEvicted { connections: u64 },
    /// Connections to more servers than [`Limits::servers`](crate::Limits::servers).
    ServersLeftOut { connections: u64 },
    /// Events behind the last window that [`Limits::windows`](crate::Limits::windows) permits.
    WindowsLeftOut { events: u64 },
    /// Requests beyond [`Limits::outstanding`](crate::Limits::outstanding).
    RequestsLeftOut { requests: u64 },
    /// Gaps that were given up because too many bytes waited behind them.
    GapsGivenUp { gaps: u64 },
}

impl Mark {
    /// How often it happened: zero is nothing to tell.
    pub(crate) fn count(&self) -> u64 {
        match *self {
            Self::NoPackets | Self::CutShort { .. } | Self::Damaged { .. } => 1,
            Self::ClockBackwards { steps, .. } => steps,
            Self::Holes { holes, .. } => holes,
            Self::Dropped { packets: count }
            | Self::CutHeaders { packets: count }
            | Self::Fragments { packets: count }
            | Self::OtherLink { packets: count, .. }
            | Self::UnknownInterface { packets: count }
            | Self::WithoutTime { packets: count }
            | Self::ConnectionsEvicted { connections: count }
            | Self::ServersLeftOut { connections: count }
            | Self::WindowsLeftOut { events: count }
            | Self::RequestsLeftOut { requests: count }
            | Self::GapsGivenUp { gaps: count } => count,
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPackets => write!(f, "the capture has no packets"),
            Self::CutShort { packets } => {
                write!(f, "the file ends inside a record, after {packets} packets")
            }
            Self::Damaged { packets } => {
                write!(f, "the file is damaged after {packets} packets")
            }
            Self::ClockBackwards { steps, largest } => {
                write!(
                    f,
                    "the clock ran backwards {steps} times, by at most {largest:?}"
                )
            }
            Self::Dropped { packets } => write!(f, "{packets} packets were dropped at capture"),
            Self::Holes { holes, bytes } => {
                write!(
                    f,
                    "the capture lacks {bytes} acknowledged bytes in {holes} holes"
                )
            }
            Self::CutHeaders { packets } => {
                write!(f, "the snap length cuts the headers of {packets} packets")
            }
            Self::Fragments { packets } => write!(f, "{packets} IP fragments were skipped"),
            Self::OtherLink { number, packets } => {
                write!(f, "{packets} packets of link type {number} were skipped")
            }
            Self::UnknownInterface { packets } => {
                write!(
                    f,
                    "{packets} packets belong to interfaces that the file does not describe"
                )
            }
            Self::WithoutTime { packets } => write!(f, "{packets} packets have no time"),
            Self::ConnectionsEvicted { connections } => {
                write!(f, "{connections} idle connections made room for others")
            }
            Self::ServersLeftOut { connections } => {
                write!(
                    f,
                    "{connections} connections to further servers were not counted"
                )
            }
            Self::WindowsLeftOut { events } => {
                write!(f, "{events} events lie in windows beyond the limit")
            }
            Self::RequestsLeftOut { requests } => {
                write!(f, "{requests} outstanding requests were beyond the limit")
            }
            Self::GapsGivenUp { gaps } => {
                write!(
                    f,
                    "{gaps} gaps were given up because too many bytes waited behind them"
                )
            }
        }
    }
}
