//! Connections of local programs to other hosts.
//!
//! A program's SYN is held ([`saiga_outgoing`]) while the stack connects with the program's own
//! address and port. The remote host's answer decides what the program gets. After an acceptance,
//! the program's connection is accepted here as one to the remote host, and is the anchor of the
//! conversation from then on. Bytes that the remote host sends before that wait in the ring.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};

use saiga_netdev::Device;
use saiga_netdev::xdp::Flows;
use saiga_outgoing::{Accepted, Attempt, Outgoing};
use saiga_stack::{CloseReason, ConnectError, ConnectionId, Instant, Micros};

use super::conversation::Conversation;
use super::{Anchors, BATCH, Worker};

/// How long a program may take to answer the acceptance of its connection. It may have ended, which
/// no packet tells; otherwise the kernel answers at once, or after it has repeated the SYN.
const PATIENCE: Micros = Micros::from_millis(10_000);

type Ends = (SocketAddr, SocketAddr);

/// The connections of a worker that are being opened.
#[derive(Debug)]
pub struct Opener {
    outgoing: Outgoing,
    /// What redirects the frames of each connection, where a device needs it.
    flows: Option<Flows>,
    opening: HashMap<Ends, Opening>,
    ends: HashMap<u32, Ends>,
    /// When admitted connections are given up, in order.
    deadlines: VecDeque<(Instant, ConnectionId, Ends)>,
    /// The connections whose frames are redirected, until the stack has forgotten them.
    redirected: HashMap<ConnectionId, Ends>,
    /// Whether there may be attempts, or connections to accept.
    pub(super) has_news: bool,
}

#[derive(Debug)]
struct Opening {
    key: u32,
    id: ConnectionId,
    attempt: Attempt,
}

impl Opener {
    /// Opens connections as `outgoing` tells; `flows` redirects their frames.
    #[must_use]
    pub fn new(outgoing: Outgoing, flows: Option<Flows>) -> Self {
        Self {
            outgoing,
            flows,
            opening: HashMap::new(),
            ends: HashMap::new(),
            deadlines: VecDeque::new(),
            redirected: HashMap::new(),
            has_news: true,
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.outgoing.descriptors().map(|one| one.as_raw_fd())
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.front().map(|(at, ..)| *at)
    }

    /// Takes a connection out of those that are being opened.
    fn take(&mut self, ends: Ends) -> Option<Opening> {
        let opening = self.opening.remove(&ends)?;
        self.ends.remove(&opening.key);
        // What fails here would fail for the next connection with these ends, too.
        let _forgotten = self.outgoing.forget(ends.0, ends.1);
        Some(opening)
    }

    /// Tells a program why its connection was not opened.
    fn answer(&self, attempt: &Attempt, reason: CloseReason) {
        // Without an answer, the program waits as long as for a host that does not answer.
        let _answered = match reason {
            CloseReason::Refused => self.outgoing.refuse(attempt),
            CloseReason::Unreachable => self.outgoing.report_unreachable(attempt),
            CloseReason::Finished
            | CloseReason::Reset
            | CloseReason::TimedOut
            | CloseReason::Aborted => Ok(()),
        };
    }
}

impl<D: Device, A: Anchors> Worker<D, A> {
    /// Does what is to do for connections of local programs. Returns whether there is more.
    pub(super) fn open(&mut self, now: Instant) -> bool {
        let Some(mut opener) = self.opener.take() else {
            return false;
        };
        for (key, closed) in std::mem::take(&mut self.table.answered) {
            self.on_answer(&mut opener, (key, closed), now);
        }
        if opener.has_news {
            opener.has_news =
                self.take_attempts(&mut opener, now) | self.take_accepted(&mut opener);
        }
        while let Some(&(at, id, ends)) = opener.deadlines.front()
            && at <= now
        {
            opener.deadlines.pop_front();
            if opener.opening.get(&ends).is_some_and(|one| one.id == id)
                && let Some(opening) = opener.take(ends)
            {
                self.abort(id, now);
                self.table.remove(opening.key);
            }
        }
        for id in std::mem::take(&mut self.table.ended) {
            if let Some((local, remote)) = opener.redirected.remove(&id)
                && let Some(flows) = &opener.flows
            {
                // The kernel drops the entry when the gateway ends.
                let _removed = flows.remove(local, remote);
            }
        }
        let has_more = opener.has_news;
        self.opener = Some(opener);
        has_more
    }

    /// Takes some attempts; returns whether there may be more.
    fn take_attempts(&mut self, opener: &mut Opener, now: Instant) -> bool {
        for _ in 0..BATCH {
            // It fails when somebody has removed the device. The routes have gone with it, so the
            // kernel carries what comes.
            let Ok(Some(attempt)) = opener.outgoing.next_attempt() else {
                return false;
            };
            let ends = (attempt.local, attempt.remote);
            // A repeated SYN has the answer of the first one.
            if opener.opening.contains_key(&ends) {
                continue;
            }
            match self.try_open(opener, attempt.clone(), now) {
                Ok(()) => {}
                Err(ConnectError::NotHost(_)) => {
                    // Otherwise, the program waits as long as for a host that does not answer.
                    let _passed = opener.outgoing.pass(&attempt);
                }
                Err(error) => opener.answer(&attempt, reason(&error)),
            }
        }
        true
    }

    /// Asks the remote host.
    fn try_open(
        &mut self,
        opener: &mut Opener,
        attempt: Attempt,
        now: Instant,
    ) -> Result<(), ConnectError> {
        let Attempt { local, remote, .. } = attempt;
        // The kernel has decided that the program may have these ports again.
        if let Some(old) = self.stack.end_time_wait(local, remote) {
            opener.redirected.remove(&old);
        }
        let id = self.stack.connect(local, remote, self.ring_bytes, now)?;
        self.stack.set(id, self.settings, now);
        if let Some(flows) = &opener.flows {
            if flows.add(local, remote).is_err() {
                self.abort(id, now);
                return Err(ConnectError::TooMany);
            }
            opener.redirected.insert(id, (local, remote));
        }
        let key = self.table.add(id, Conversation::opening(id));
        opener.ends.insert(key, (local, remote));
        opener
            .opening
            .insert((local, remote), Opening { key, id, attempt });
        Ok(())
    }

    /// The remote host has accepted, or the connection has ended.
    fn on_answer(
        &mut self,
        opener: &mut Opener,
        (key, closed): (u32, Option<CloseReason>),
        now: Instant,
    ) {
        let Some(&ends) = opener.ends.get(&key) else {
            return;
        };
        let Some(opening) = opener.opening.get(&ends) else {
            return;
        };
        let admitted = match closed {
            None => opener.outgoing.admit(&opening.attempt).is_ok(),
            Some(reason) => {
                opener.answer(&opening.attempt, reason);
                false
            }
        };
        if admitted {
            let deadline = (now + PATIENCE, opening.id, ends);
            opener.deadlines.push_back(deadline);
            return;
        }
        if closed.is_none() {
            self.abort(opening.id, now);
        }
        opener.take(ends);
        self.table.remove(key);
    }

    /// Takes some connections that were admitted; returns whether there may be more.
    fn take_accepted(&mut self, opener: &mut Opener) -> bool {
        for _ in 0..BATCH {
            // Without descriptors, the connection ends at its deadline.
            let Ok(Some(accepted)) = opener.outgoing.accept() else {
                return false;
            };
            let Accepted {
                stream,
                local,
                remote,
            } = accepted;
            let Some(opening) = opener.take((local, remote)) else {
                // The remote host has ended the connection in the meantime.
                saiga_anchor::end::reset(stream);
                continue;
            };
            if let Some((conversation, _)) = self.table.get(opening.key) {
                conversation.accept(stream);
            }
            if self.watch(opening.key) {
                self.table.make_due(opening.key);
            } else {
                self.table.lost.push(opening.key);
            }
        }
        true
    }
}

/// What a program is told if the remote host cannot be asked.
const fn reason(error: &ConnectError) -> CloseReason {
    match error {
        ConnectError::NotOwn(_) | ConnectError::NotHost(_) | ConnectError::NoRoute(_) => {
            CloseReason::Unreachable
        }
        ConnectError::InUse { .. } | ConnectError::PortsExhausted(_) | ConnectError::TooMany => {
            CloseReason::TimedOut
        }
    }
}
