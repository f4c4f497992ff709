//! Ends a program that was started for a recording: sends SIGTERM to its process group and waits.
//!
//! A database may save its data for minutes after SIGTERM, and SIGKILL would lose the data.
//! Therefore only the user decides to kill, with another signal.

use std::io;
use std::time::{Duration, Instant};

use saiga_process::child::{Child, Signal};
use saiga_process::interrupt::Interrupt;

use crate::exit;

/// Time before the processes that are waited for are named. A signal within this time is taken for
/// a duplicate of the first: `timeout` sends two.
const NOTICE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// A process group that was sent SIGTERM.
pub(super) struct Ending {
    child: Child,
    asked: Instant,
    /// Number of signals received when the processes were named.
    signals_at_notice: Option<u64>,
}

impl Ending {
    /// Sends SIGTERM to the process group.
    pub(super) fn ask(child: Child) -> Self {
        child.signal_group(Signal::TERM);
        Self {
            child,
            asked: Instant::now(),
            signals_at_notice: None,
        }
    }

    /// Waits for at most `pause`; returns whether the group has ended. Kills the group if a signal
    /// arrives after its processes were named.
    pub(super) fn wait(
        &mut self,
        pause: Duration,
        interrupt: &Interrupt,
        say: &dyn Fn(&str),
    ) -> io::Result<bool> {
        if self.child.wait_for_group(pause)?.is_some() {
            return Ok(true);
        }
        let signals = interrupt.count()?;
        match self.signals_at_notice {
            None if self.asked.elapsed() >= NOTICE => {
                self.signals_at_notice = Some(signals);
                let who = self.child.group().join(", ");
                say(&format!("waiting for {who} to end; press Ctrl-C to kill"));
            }
            Some(before) if signals > before => {
                say("killing the remaining processes");
                self.child.kill()?;
                return Ok(true);
            }
            None | Some(_) => {}
        }
        Ok(false)
    }

    /// Waits until the group has ended.
    pub(super) fn finish(mut self, interrupt: &Interrupt) -> io::Result<()> {
        while !self.wait(PAUSE, interrupt, &exit::say)? {}
        Ok(())
    }
}
