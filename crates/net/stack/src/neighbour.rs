//! Neighbours: the MAC addresses of other hosts on the link.
//!
//! Spec: RFC 4861 §7.2 and §7.3 (states, probing), RFC 826 (ARP). IPv4 and IPv6 share the states;
//! only the packets differ. Frames wait here for the MAC address of their neighbour, a few for each
//! neighbour. A stale neighbour goes on being used while it is probed.
//!
//! Adversary: any host on the link. It can claim addresses, as on every Ethernet, but it cannot
//! make this table grow beyond its limit, take the place of a neighbour in use, or change a
//! permanent entry.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;

use saiga_tcp::{Instant, Micros};
use saiga_wire::ethernet::Mac;
use saiga_wire::virtio;

use crate::config::Resolver;
use crate::wheel::Wheel;

/// Time between two solicitations (RFC 4861 §10, RetransTimer).
const RETRANSMIT: Micros = Micros::from_secs(1);
/// Solicitations without an answer before a neighbour counts as gone.
const MOST_SOLICITATIONS: u8 = 3;
/// How long a confirmation holds (RFC 4861 §10, REACHABLE_TIME).
const REACHABLE: Micros = Micros::from_secs(30);
/// How long a stale neighbour is used before it is probed (RFC 4861 §10, DELAY_FIRST_PROBE_TIME).
const DELAY: Micros = Micros::from_secs(5);
/// Most frames that wait for one neighbour, and bytes of all frames that wait.
const MOST_HELD: usize = 8;
const MOST_HELD_BYTES: usize = 1 << 20;

/// What a packet of a neighbour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It asks for an address of this host, and gives its own.
    Request,
    /// It answers a solicitation of this host. `overrides`: the MAC address replaces another one.
    Answer { overrides: bool },
    /// It announces its address without having been asked.
    Announcement { overrides: bool },
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// The MAC address is known.
    Known(Mac),
    /// Frames must wait.
    Unknown,
}

/// A solicitation that must be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Solicitation {
    pub(crate) interface: u8,
    pub(crate) target: IpAddr,
    /// The MAC address to probe; `None` asks all hosts.
    pub(crate) mac: Option<Mac>,
}

/// A frame that waits. Its destination MAC address is not set yet.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) frame: Vec<u8>,
    pub(crate) offload: virtio::Header,
}

/// The neighbours of all interfaces.
#[derive(Debug)]
pub(crate) struct Neighbours {
    entries: Vec<Entry>,
    /// Numbers of the entries that are free.
    free: Vec<u32>,
    resolver: Resolver,
    by_address: BTreeMap<(u8, IpAddr), u32>,
    limit: usize,
    timers: Wheel,
    held_bytes: usize,
    /// Neighbours that must be solicited now.
    soliciting: VecDeque<u32>,
    /// Frames whose neighbour is known now, and frames whose neighbour does not answer.
    released: VecDeque<Held>,
    failed: VecDeque<Vec<u8>>,
    /// Changes when a number of an entry has another meaning.
    epoch: u32,
    /// Frames that were dropped because too many waited, or because no answer came.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Entry {
    key: (u8, IpAddr),
    state: State,
    mac: Mac,
    used_at: Instant,
    held: VecDeque<Held>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The place is free.
    Free,
    /// The MAC address is not known; so many solicitations were sent.
    Incomplete { sent: u8, due: Instant },
    /// Confirmed not long ago.
    Reachable { until: Instant },
    /// Known from some time ago, or without having asked.
    Stale,
    /// Stale and in use: the upper layer may still confirm it.
    Delay { until: Instant },
    /// Asked whether it is still there.
    Probe { sent: u8, due: Instant },
    /// Set by the owner, who was asked at this instant whether it is still right.
    Permanent { asked: Instant },
}

impl Neighbours {
    /// An empty table for `limit` neighbours.
    pub(crate) fn new(limit: usize, resolver: Resolver, now: Instant) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            resolver,
            by_address: BTreeMap::new(),
            limit,
            timers: Wheel::new(now),
            held_bytes: 0,
            soliciting: VecDeque::new(),
            released: VecDeque::new(),
            failed: VecDeque::new(),
            epoch: 0,
            dropped: 0,
        }
    }

    /// Changes when a number that [`Self::find`] gave may mean another neighbour.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The number of a neighbour, which is solicited if it is new. `None` if there are too many
    /// neighbours in use.
    pub(crate) fn find(&mut self, interface: u8, address: IpAddr, now: Instant) -> Option<u32> {
        let key = (interface, address);
        if let Some(number) = self.by_address.get(&key) {
            return Some(*number);
        }
        let state = State::Incomplete { sent: 0, due: now };
        let number = self.add(key, state, Mac::BROADCAST, now)?;
        self.soliciting.push_back(number);
        Some(number)
    }

    /// The MAC address of a neighbour that is about to be used.
    pub(crate) fn resolve(&mut self, number: u32, now: Instant) -> Resolution {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return Resolution::Unknown;
        };
        entry.used_at = now;
        match entry.state {
            State::Free | State::Incomplete { .. } => Resolution::Unknown,
            State::Stale => {
                let until = now + DELAY;
                entry.state = State::Delay { until };
                self.timers.set_at_latest(number, until);
                Resolution::Known(entry.mac)
            }
            State::Reachable { .. }
            | State::Delay { .. }
            | State::Probe { .. }
            | State::Permanent { .. } => Resolution::Known(entry.mac),
        }
    }

    /// The MAC address of a neighbour, if it is known.
    pub(crate) fn mac(&self, key: (u8, IpAddr)) -> Option<Mac> {
        let number = self.by_address.get(&key)?;
        let entry = self.entries.get(*number as usize)?;
        match entry.state {
            State::Free | State::Incomplete { .. } => None,
            State::Reachable { .. }
            | State::Stale
            | State::Delay { .. }
            | State::Probe { .. }
            | State::Permanent { .. } => Some(entry.mac),
        }
    }

    /// Keeps a frame until the MAC address is known; drops the oldest of too many.
    pub(crate) fn hold(&mut self, number: u32, held: Held) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        if entry.held.len() >= MOST_HELD
            && let Some(oldest) = entry.held.pop_front()
        {
            self.held_bytes -= oldest.frame.len();
            self.dropped += 1;
        }
        if self.held_bytes + held.frame.len() > MOST_HELD_BYTES {
            self.dropped += 1;
            return;
        }
        self.held_bytes += held.frame.len();
        entry.held.push_back(held);
    }

    /// Progress of a connection shows that its neighbour is there (RFC 4861 §7.3.1).
    pub(crate) fn confirm(&mut self, number: u32, now: Instant) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        match entry.state {
            State::Reachable { .. } | State::Stale | State::Delay { .. } | State::Probe { .. } => {
                self.reach(number, now);
            }
            State::Free | State::Incomplete { .. } | State::Permanent { .. } => {}
        }
    }

    /// A connection makes no progress: the neighbour is asked whether it is there, or the owner,
    /// who knows it.
    pub(crate) fn doubt(&mut self, number: u32, now: Instant) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        match &mut entry.state {
            State::Reachable { .. } => entry.state = State::Stale,
            State::Permanent { asked }
                if self.resolver == Resolver::Owner && now.since(*asked) >= RETRANSMIT =>
            {
                *asked = now;
                self.soliciting.push_back(number);
            }
            State::Permanent { .. }
            | State::Free
            | State::Incomplete { .. }
            | State::Stale
            | State::Delay { .. }
            | State::Probe { .. } => {}
        }
    }

    /// A packet of a neighbour (RFC 4861 §7.2.3, §7.2.5; RFC 826).
    pub(crate) fn learn(&mut self, key: (u8, IpAddr), mac: Mac, news: News, now: Instant) {
        if mac.is_group() {
            return;
        }
        let Some(number) = self.by_address.get(&key).copied() else {
            if news == News::Request {
                self.add(key, State::Stale, mac, now);
            }
            return;
        };
        let entry = &mut self.entries[number as usize];
        let is_other = entry.mac != mac;
        match entry.state {
            State::Free | State::Permanent { .. } => {}
            State::Incomplete { .. } => {
                entry.mac = mac;
                self.release(number);
                self.settle(number, news, now);
            }
            State::Reachable { .. } if is_other && !news.overrides() => entry.state = State::Stale,
            State::Stale | State::Delay { .. } | State::Probe { .. }
                if is_other && !news.overrides() => {}
            State::Reachable { .. } | State::Stale | State::Delay { .. } | State::Probe { .. } => {
                entry.mac = mac;
                if is_other || matches!(news, News::Answer { .. }) {
                    self.settle(number, news, now);
                }
            }
        }
    }

    /// Makes an entry that neither probes nor other hosts change.
    pub(crate) fn set_permanent(&mut self, key: (u8, IpAddr), mac: Mac, now: Instant) -> bool {
        let state = State::Permanent { asked: now };
        let number = match self.by_address.get(&key) {
            Some(number) => Some(*number),
            None => self.add(key, state, mac, now),
        };
        let Some(number) = number else {
            return false;
        };
        let entry = &mut self.entries[number as usize];
        (entry.state, entry.mac) = (state, mac);
        self.timers.cancel(number);
        self.release(number);
        true
    }

    /// Forgets an entry; drops the frames that wait for it.
    pub(crate) fn forget(&mut self, key: (u8, IpAddr)) {
        if let Some(number) = self.by_address.get(&key) {
            self.fail(*number);
        }
    }

    /// Forgets all neighbours: the network has changed.
    pub(crate) fn clear(&mut self, now: Instant) {
        *self = Self {
            epoch: self.epoch.wrapping_add(1),
            dropped: self.dropped,
            ..Self::new(self.limit, self.resolver, now)
        };
    }

    /// When [`Self::on_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles what is due.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        while let Some(number) = self.timers.expire(now) {
            let state = self.entries[number as usize].state;
            match state {
                State::Free | State::Stale | State::Permanent { .. } => {}
                State::Reachable { until } | State::Delay { until } if until > now => {
                    self.timers.set_at_latest(number, until);
                }
                State::Reachable { .. } => self.entries[number as usize].state = State::Stale,
                State::Delay { .. } => {
                    self.entries[number as usize].state = State::Probe { sent: 0, due: now };
                    self.soliciting.push_back(number);
                }
                State::Incomplete { due, .. } | State::Probe { due, .. } if due > now => {
                    self.timers.set_at_latest(number, due);
                }
                State::Incomplete { sent, .. } | State::Probe { sent, .. } => {
                    if sent >= MOST_SOLICITATIONS {
                        self.fail(number);
                    } else {
                        self.soliciting.push_back(number);
                    }
                }
            }
        }
    }

    /// Whether solicitations or frames whose neighbour is known now may wait.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        !self.released.is_empty() || !self.soliciting.is_empty()
    }

    /// A solicitation that must be sent now.
    pub(crate) fn poll_solicitation(&mut self, now: Instant) -> Option<Solicitation> {
        while let Some(number) = self.soliciting.pop_front() {
            let entry = &mut self.entries[number as usize];
            let due = now + RETRANSMIT;
            let mac = match &mut entry.state {
                State::Incomplete { sent, due: next } if *next <= now => {
                    (*sent, *next) = (*sent + 1, due);
                    None
                }
                State::Probe { sent, due: next } if *next <= now => {
                    (*sent, *next) = (*sent + 1, due);
                    Some(entry.mac)
                }
                // The owner is asked, who decides whether to probe.
                State::Permanent { .. } => {
                    let (interface, target) = entry.key;
                    return Some(Solicitation {
                        interface,
                        target,
                        mac: Some(entry.mac),
                    });
                }
                // The solicitation has left already, or an answer has come.
                State::Free
                | State::Incomplete { .. }
                | State::Probe { .. }
                | State::Reachable { .. }
                | State::Stale
                | State::Delay { .. } => continue,
            };
            let (interface, target) = entry.key;
            self.timers.set_at_latest(number, due);
            return Some(Solicitation {
                interface,
                target,
                mac,
            });
        }
        None
    }

    /// A frame whose neighbour is known now.
    pub(crate) fn poll_released(&mut self) -> Option<Held> {
        let held = self.released.pop_front()?;
        self.held_bytes -= held.frame.len();
        Some(held)
    }

    /// A frame that was dropped, because its neighbour does not answer.
    pub(crate) fn poll_failed(&mut self) -> Option<Vec<u8>> {
        self.failed.pop_front()
    }

    /// The state after a packet that gave the MAC address.
    fn settle(&mut self, number: u32, news: News, now: Instant) {
        match news {
            News::Answer { .. } => self.reach(number, now),
            News::Request | News::Announcement { .. } => {
                self.entries[number as usize].state = State::Stale;
            }
        }
    }

    fn reach(&mut self, number: u32, now: Instant) {
        let until = now + REACHABLE;
        self.entries[number as usize].state = State::Reachable { until };
        self.timers.set_at_latest(number, until);
    }

    fn release(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        let mac = entry.mac;
        for mut held in entry.held.drain(..) {
            held.frame[..6].copy_from_slice(&mac.0);
            self.released.push_back(held);
        }
    }

    /// The neighbour does not answer: it is forgotten, so that the next packet asks again.
    fn fail(&mut self, number: u32) {
        for held in self.remove(number) {
            self.held_bytes -= held.frame.len();
            self.dropped += 1;
            self.failed.push_back(held.frame);
        }
    }

    /// Frees an entry; returns the frames that waited.
    fn remove(&mut self, number: u32) -> VecDeque<Held> {
        let entry = &mut self.entries[number as usize];
        entry.state = State::Free;
        self.free.push(number);
        self.by_address.remove(&entry.key);
        self.timers.cancel(number);
        self.epoch = self.epoch.wrapping_add(1);
        core::mem::take(&mut entry.held)
    }

    /// Adds an entry. If the table is full, a stale one that has not been used for longest goes.
    fn add(&mut self, key: (u8, IpAddr), state: State, mac: Mac, now: Instant) -> Option<u32> {
        if self.by_address.len() >= self.limit {
            let stale = (0..)
                .zip(&self.entries)
                .filter(|(_, entry)| entry.state == State::Stale);
            let (number, _) = stale.min_by_key(|(_, entry)| entry.used_at)?;
            self.remove(number);
        }
        let number = match self.free.pop() {
            Some(number) => number as usize,
            None => self.entries.len(),
        };
        // An entry that was never used is the first to be replaced.
        let is_used = matches!(state, State::Incomplete { .. });
        let entry = Entry {
            key,
            state,
            mac,
            used_at: if is_used { now } else { Instant(0) },
            held: VecDeque::new(),
        };
        if number == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[number] = entry;
        }
        let number = u32::try_from(number).ok()?;
        self.by_address.insert(key, number);
        Some(number)
    }
}

impl News {
    const fn overrides(self) -> bool {
        match self {
            // ARP has no such flag: the last packet counts (RFC 826).
            Self::Request => true,
            Self::Answer { overrides } | Self::Announcement { overrides } => overrides,
        }
    }
}
