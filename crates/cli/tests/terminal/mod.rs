//! A pseudo-terminal with a program on it, and the content of the screen.
//!
//! [`Screen`] implements only what `saiga` may write: an unknown escape sequence, such as a change
//! of mode, fails the test.

mod screen;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use screen::Screen;

/// Much longer than anything here takes, also on a busy machine.
const PATIENCE_S: i64 = 120;

/// A program whose stdin and stderr are a terminal.
pub(crate) struct Terminal {
    master: File,
    /// Kept open, so that the last output can be read after the program has ended.
    slave: OwnedFd,
    before: Termios,
    pub(crate) screen: Screen,
    pub(crate) child: Child,
}

impl Terminal {
    /// Starts `command` as the leader of a session on a terminal of this size. Its stdout is a
    /// pipe.
    pub(crate) fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(ptsname(&master, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let before = tcgetattr(&slave).unwrap();
        // Ctrl-C is sent to the session whose controlling terminal this is.
        let mut line = Command::new("setsid");
        line.arg("--ctty").arg(command.get_program());
        line.args(command.get_args())
            .env_clear()
            .env("TERM", "xterm");
        line.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let end = || Stdio::from(slave.try_clone().unwrap());
        line.stdin(end()).stderr(end()).stdout(Stdio::piped());
        saiga_trials::reaper::end_with_parent(&mut line, saiga_trials::Signal::TERM);
        let child = line.spawn().unwrap();
        Self {
            master: File::from(master),
            slave,
            before,
            screen: Screen::new(columns.into(), rows.into()),
            child,
        }
    }

    /// Reads until the screen fulfils the condition.
    pub(crate) fn await_screen(&mut self, what: &str, is_there: impl Fn(&Screen) -> bool) {
        while !is_there(&self.screen) {
            assert!(self.read(PATIENCE_S), "no {what}:\n{}", self.screen.text());
        }
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        // Output for the old size must be on the screen before.
        while self.read(0) {}
        tcsetwinsize(&self.master, size(columns, rows)).unwrap();
        self.screen.resize(columns.into(), rows.into());
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: u8) {
        self.master.write_all(&[key]).unwrap();
    }

    /// Waits for the end; returns the exit status and the output. The terminal must be as before.
    ///
    /// The terminal is read meanwhile, because a program that writes more than its buffer (64 KiB,
    /// or half a minute of a dashboard) would block.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let mut stdout = self.child.stdout.take().unwrap();
        let printed = thread::spawn(move || {
            let mut printed = String::new();
            stdout.read_to_string(&mut printed).unwrap();
            printed
        });
        let ended = pidfd_open(super::pid(self.child.id()), PidfdFlags::empty()).unwrap();
        loop {
            let mut waits = [&self.master as &dyn AsFd, &ended]
                .map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN));
            poll(&mut waits, None).unwrap();
            if !self.read(0) {
                break;
            }
        }
        let status = self.child.wait().unwrap();
        let now = tcgetattr(&self.slave).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        (status.code(), printed.join().unwrap())
    }

    /// Whether output arrived within `seconds`.
    fn read(&mut self, seconds: i64) -> bool {
        let timeout = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let mut waits = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut waits, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.screen.write(&bytes[..count]);
        count > 0
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
