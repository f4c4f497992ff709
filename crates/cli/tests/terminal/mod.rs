//! A terminal: a pseudo-terminal with a program on it, and what the screen shows.
//!
//! [`Screen`] knows what `saiga` may write and no more: an escape sequence that it does not know,
//! a change of mode above all, fails the test.

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

/// Nothing here takes so long, however busy the machine is.
const PATIENCE_S: i64 = 120;

/// A program whose standard input and error are a terminal.
pub(crate) struct Terminal {
    master: File,
    /// Kept open, so that what was written last can be read after the end.
    slave: OwnedFd,
    before: Termios,
    pub(crate) screen: Screen,
    pub(crate) child: Child,
}

impl Terminal {
    /// Starts `command` as the leader of a session on a terminal of this size. Its standard output
    /// is a pipe.
    pub(crate) fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(ptsname(&master, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let before = tcgetattr(&slave).unwrap();
        // Ctrl-C reaches who has the terminal as its controlling one.
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
        saiga_trials::reaper::end_with_parent(&mut line, saiga_trials::Signal::Terminate);
        let child = line.spawn().unwrap();
        Self {
            master: File::from(master),
            slave,
            before,
            screen: Screen::new(columns.into(), rows.into()),
            child,
        }
    }

    /// Reads until the screen is as wanted.
    pub(crate) fn await_screen(&mut self, what: &str, is_there: impl Fn(&Screen) -> bool) {
        while !is_there(&self.screen) {
            assert!(self.read(PATIENCE_S), "no {what}:\n{}", self.screen.text());
        }
    }

    /// Another size, as when somebody pulls at the window's corner.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        // What was written for the old size is on the screen before.
        while self.read(0) {}
        tcsetwinsize(&self.master, size(columns, rows)).unwrap();
        self.screen.resize(columns.into(), rows.into());
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: u8) {
        self.master.write_all(&[key]).unwrap();
    }

    /// Waits for the end: its exit code and what it printed. Everything must be as it was.
    ///
    /// The terminal is read until then: a program that writes more than the terminal holds (64 KiB,
    /// or half a minute of a dashboard) would wait for ever.
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

    /// Whether something came within `seconds`.
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
