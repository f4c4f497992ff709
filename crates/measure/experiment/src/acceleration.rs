//! The question whether a process is accelerated, and which answers prove that a run was.
//!
//! Deliberately absent: how it is answered. Measuring knows no library.

/// Share of the bytes in a measured time that must have gone by channel.
const LEAST_SHARE: f64 = 0.9;

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

/// Bytes that the connections of a process moved in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// By channel, both ways.
    pub channel_bytes: u64,
    /// By TCP, both ways.
    pub tcp_bytes: u64,
}

impl Moved {
    /// Between two looks. What moved on connections that closed in between is not seen.
    #[must_use]
    pub fn between(before: &Acceleration, after: &Acceleration) -> Self {
        let since = |of: fn(&Acceleration) -> u64| of(after).saturating_sub(of(before));
        Self {
            channel_bytes: since(|seen| seen.channel_bytes),
            tcp_bytes: since(|seen| seen.tcp_bytes),
        }
    }

    /// In both times together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            channel_bytes: self.channel_bytes + other.channel_bytes,
            tcp_bytes: self.tcp_bytes + other.tcp_bytes,
        }
    }

    /// The share that went by channel; 0 where nothing moved.
    #[must_use]
    pub fn channel_share(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let [channel, tcp] = [self.channel_bytes, self.tcp_bytes].map(|bytes| bytes as f64);
        channel / (channel + tcp).max(1.0)
    }

    /// Why a run under Saiga that moved these bytes does not count, in words for people; `None`
    /// when nearly all of them went by channel. `upgraded` of the client's `connections` were moved
    /// into channels.
    #[must_use]
    pub fn shortfall(self, upgraded: u64, connections: u32) -> Option<String> {
        let Self {
            channel_bytes,
            tcp_bytes,
        } = self;
        (self.channel_share() < LEAST_SHARE).then(|| {
            format!(
                "{channel_bytes} bytes went by channel and {tcp_bytes} by TCP, and {upgraded} of \
                 the client's {connections} connections were upgraded"
            )
        })
    }
}
