//! The end of a program that was started for a recording: its process group is asked once and waited for.
//!
//! A database may save its data for minutes when it is asked to end, and would lose them if it were killed: only the user
//! knows when that is too long.

use std::io;
use std::time::{Duration, Instant};

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{Child, Signal};

use crate::exit;

/// Before it is said who is waited for. A signal until then is the one that was meant already: `timeout` sends two.
const NOTICE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// A program that was asked to end, with its group.
pub(super) struct Ending {
    child: Child,
    asked: Instant,
    /// How many signals had come when it was said who is waited for.
    told: Option<u64>,
}

impl Ending {
    /// Asks it to.
    pub(super) fn ask(child: Child) -> Self {
        child.signal_group(Signal::TERM);
        Self {
            child,
            asked: Instant::now(),
            told: None,
        }
    }

    /// Waits for a while; whether nobody is left. A signal that comes after it was said who is waited for kills them.
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
        match self.told {
            None if self.asked.elapsed() >= NOTICE => {
                self.told = Some(signals);
                let who = self.child.group().join(", ");
                say(&format!("waiting for {who} to end; Ctrl-C kills"));
            }
            Some(before) if signals > before => {
                say("killing what has not ended");
                self.child.kill()?;
                return Ok(true);
            }
            None | Some(_) => {}
        }
        Ok(false)
    }

    /// Waits until nobody is left.
    pub(super) fn finish(mut self, interrupt: &Interrupt) -> io::Result<()> {
        while !self.wait(PAUSE, interrupt, &exit::say)? {}
        Ok(())
    }
}
