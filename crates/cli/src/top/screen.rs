//! The terminal while `top` runs: keys without Enter, signals as input.
//!
//! Everything is restored on drop.
#![expect(unsafe_code, reason = "termios, signalfd and poll")]

use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

const INTERRUPT: u8 = 3; // Ctrl-C, which is a key here.
const HOME_AND_CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";
const STDIN: i32 = 0;

#[derive(Debug, PartialEq, Eq)]
enum Wake {
    Tick,
    /// The user pressed a quit key, or a signal arrived.
    Quit,
}

/// The terminal, if there is one, and the signals that end the program.
pub(crate) struct Screen {
    signals: OwnedFd,
    saved: Option<libc::termios>,
}

impl Screen {
    /// Reads signals as input from here on; on a terminal, keys too.
    pub(crate) fn open() -> io::Result<Self> {
        let signals = block_signals()?;
        let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        let saved = if is_interactive {
            Some(keys_without_enter()?)
        } else {
            None
        };
        Ok(Self { signals, saved })
    }

    /// Shows a frame each second, until a quit key or a signal, or as many as `most` says. With
    /// `in_place`, a terminal shows one after the other in the same place.
    pub(crate) fn show(
        &mut self,
        most: Option<u64>,
        in_place: bool,
        mut frame: impl FnMut() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let in_place = in_place && most != Some(1) && io::stdout().is_terminal();
        let mut left = most;
        while left != Some(0) && self.wait_a_second()? == Wake::Tick {
            let text = frame()?;
            left = left.map(|left| left - 1);
            let text = if in_place { self.in_place(&text) } else { text };
            let mut stdout = io::stdout();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
        }
        Ok(())
    }

    /// Waits for a second, a quit key or a signal.
    fn wait_a_second(&mut self) -> io::Result<Wake> {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(1);
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            // Rounded up, so that the last wait is not zero.
            let left_ms = i32::try_from(left.as_millis() + 1).unwrap_or(1000);
            if left.is_zero() {
                return Ok(Wake::Tick);
            }
            let keys = if self.saved.is_some() { STDIN } else { -1 };
            let entry = |fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            let mut waits = [entry(self.signals.as_raw_fd()), entry(keys)];
            // SAFETY: two initialised entries.
            let ready = unsafe { libc::poll(waits.as_mut_ptr(), 2, left_ms) };
            if ready == -1 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(io::Error::last_os_error());
            }
            let [signal, key] = waits;
            if signal.revents != 0 || (key.revents != 0 && is_quit_key()) {
                return Ok(Wake::Quit);
            }
        }
    }

    /// Cuts `frame` to the terminal's size, and prepends the codes that clear the screen.
    fn in_place(&self, frame: &str) -> String {
        let (columns, rows) = size();
        let lines: Vec<String> = frame
            .lines()
            .take(rows.saturating_sub(2))
            .map(|line| line.chars().take(columns).collect())
            .collect();
        format!("{HOME_AND_CLEAR}{}\n\npress q to quit\n", lines.join("\n"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            // SAFETY: `saved` came from tcgetattr.
            unsafe { libc::tcsetattr(STDIN, libc::TCSANOW, saved) };
            // Ignored: if the terminal is gone, there is nothing to restore.
            let _ = io::stdout().flush();
        }
    }
}

fn block_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `set` is room for a signal set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: `set` was initialised by sigemptyset.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: initialised above. This program has one thread.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
    // SAFETY: initialised above.
    let fd = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Disables line mode, echo and signals from keys; returns the previous settings.
fn keys_without_enter() -> io::Result<libc::termios> {
    let mut settings = MaybeUninit::uninit();
    // SAFETY: `settings` is room for the answer.
    if unsafe { libc::tcgetattr(STDIN, settings.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: tcgetattr succeeded, so it filled the structure.
    let saved: libc::termios = unsafe { settings.assume_init() };
    let mut changed = saved;
    changed.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
    // SAFETY: `changed` is a valid structure.
    if unsafe { libc::tcsetattr(STDIN, libc::TCSANOW, &raw const changed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(saved)
}

/// Reads one key; end of file counts as q.
fn is_quit_key() -> bool {
    let mut key = 0_u8;
    // SAFETY: one byte into a live variable. Not through std, which would read ahead.
    let read = unsafe { libc::read(STDIN, (&raw mut key).cast(), 1) };
    read <= 0 || matches!(key, b'q' | b'Q' | INTERRUPT)
}

/// Columns and rows of the terminal; 80 by 24 if unknown.
fn size() -> (usize, usize) {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: `size` is what this request writes to.
    let asked = unsafe { libc::ioctl(1, libc::TIOCGWINSZ, &raw mut size) };
    if asked != 0 || size.ws_col == 0 {
        return (80, 24);
    }
    (size.ws_col.into(), size.ws_row.into())
}
