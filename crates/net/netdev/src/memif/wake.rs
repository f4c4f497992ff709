//! The descriptor of a device: readable when there is something to do, whatever peer there is.
//!
//! An epoll set of the listener, the control socket, the eventfd of received frames, and a timer.
//! The eventfd is never read: it belongs to the peer, too, which could make a read wait. So the set
//! tells of each write to it (EPOLLET).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// A peer wants to connect.
    Connection = 1,
    /// The peer has sent a message, or has closed its socket.
    Message,
    /// Frames may wait.
    Frames,
    /// The time has come.
    Time,
}

const ALL: [News; 4] = [News::Connection, News::Message, News::Frames, News::Time];

/// The epoll set of a device and its timer.
#[derive(Debug)]
pub(super) struct Wake {
    set: OwnedFd,
    timer: OwnedFd,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let wake = Self { set, timer };
        wake.add(wake.timer.as_fd(), News::Time)?;
        Ok(wake)
    }

    /// Tells of this descriptor until it is closed.
    pub(super) fn add(&self, of: BorrowedFd<'_>, news: News) -> io::Result<()> {
        let flags = match news {
            News::Frames => EventFlags::IN | EventFlags::ET,
            News::Connection | News::Message | News::Time => EventFlags::IN,
        };
        Ok(epoll::add(
            &self.set,
            of,
            EventData::new_u64(news as u64),
            flags,
        )?)
    }

    /// Tells of this descriptor no longer. Copies of it may be open at the peer.
    pub(super) fn remove(&self, of: BorrowedFd<'_>) {
        // It may be that it was not added.
        let _removed = epoll::delete(&self.set, of);
    }

    /// What is to be done now. The descriptor is not readable afterwards, except for what is still
    /// to be done.
    pub(super) fn take(&self) -> io::Result<Vec<News>> {
        let mut events = [MaybeUninit::uninit(); ALL.len()];
        let (events, _) = epoll::wait(&self.set, &mut events, Some(&Timespec::default()))?;
        let found = events.iter().filter_map(|event| {
            let data = event.data.u64();
            ALL.into_iter().find(|news| *news as u64 == data)
        });
        let found: Vec<News> = found.collect();
        if found.contains(&News::Time) {
            // The timer has expired, so the call does not wait.
            rustix::io::read(&self.timer, &mut [0; 8])?;
        }
        Ok(found)
    }

    /// Tells of the time after so long, and from then on at intervals of `every`; once if that is
    /// zero.
    pub(super) fn set_timer(&self, after: Duration, every: Duration) -> io::Result<()> {
        let timer = Itimerspec {
            it_interval: Timespec::try_from(every).map_err(io::Error::other)?,
            it_value: Timespec::try_from(after).map_err(io::Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    pub(super) fn stop_timer(&self) -> io::Result<()> {
        self.set_timer(Duration::ZERO, Duration::ZERO)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
