//! A descriptor that is readable when frames wait in a device, or when an instant has come.
//!
//! Source: epoll(7), timerfd_create(2).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// An epoll set of a device and a timer.
#[derive(Debug)]
pub(super) struct Alarm {
    set: OwnedFd,
    timer: OwnedFd,
    /// The instant for which the timer is set.
    at_us: Option<u64>,
}

impl Alarm {
    pub(super) fn beside(device: BorrowedFd<'_>) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let nothing = epoll::EventData::new_u64(0);
        epoll::add(&set, device, nothing, epoll::EventFlags::IN)?;
        epoll::add(&set, &timer, nothing, epoll::EventFlags::IN)?;
        Ok(Self {
            set,
            timer,
            at_us: None,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    /// Sets the instant. The descriptor is no longer readable because of an earlier one.
    pub(super) fn set(&mut self, at_us: Option<u64>, now_us: u64) -> io::Result<()> {
        if at_us == self.at_us {
            return Ok(());
        }
        let wait = at_us.map_or(Duration::ZERO, |at| {
            // A timer that is set to zero is stopped.
            Duration::from_micros(at.saturating_sub(now_us)).max(Duration::from_nanos(1))
        });
        let timer = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(wait).map_err(io::Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        self.at_us = at_us;
        Ok(())
    }
}
