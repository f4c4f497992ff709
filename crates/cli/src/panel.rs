//! A dashboard at the bottom of the terminal, redrawn by a thread of its own.
//!
//! News come in by [`Panel::tell`] from whoever has them; the host's are fetched from [`Host`], or
//! come with the load's where that watches it. Lines
//! for people go above it ([`Panel::say`]). Where stderr is not a terminal there is no panel, and
//! whoever wanted one falls back to lines.
//!
//! Deliberately absent: what the panel shows (`saiga_sampler::dashboard`).

mod painter;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use saiga_sampler::dashboard::{Dashboard, Size};

use crate::exit;
use crate::host::Host;
use crate::load_file::{Look, Reader, Second};
use painter::Painter;

/// Between two frames when there are no news: the host has a row each second.
const REST: Duration = Duration::from_secs(1);
/// Between two frames at least; runs of some milliseconds would have the terminal busy.
const PAUSE: Duration = Duration::from_millis(200);
/// Lines that are left to the cursor and to what was there before.
const FREE_ROWS: usize = 1;

/// The panel. Dropping it removes it from the terminal.
#[derive(Debug)]
pub(crate) struct Panel {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Apart from the state, so that a terminal that takes nothing holds nobody up who has news.
    painter: Mutex<Painter>,
    host: Arc<Host>,
}

#[derive(Debug, Default)]
struct State {
    dashboard: Dashboard,
    load: Option<Reader>,
    is_new: bool,
    stop: bool,
}

impl Panel {
    /// On stderr, unless it is not a terminal or one that cannot move its cursor.
    pub(crate) fn open(host: &Arc<Host>) -> Option<Self> {
        let can_move =
            std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        if !can_move || !io::stderr().is_terminal() {
            return None;
        }
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            painter: Mutex::default(),
            host: Arc::clone(host),
        });
        let thread = thread::Builder::new().name("saiga-panel".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.draw_until_stopped()
        });
        // Without a thread there are lines.
        let thread = Some(thread.ok()?);
        Some(Self { shared, thread })
    }

    /// Shows what a load that somebody started says of itself in this file.
    pub(crate) fn follow(&self, path: &Path) {
        self.shared.state().load = Some(Reader::new(path));
    }

    /// Tells the dashboard news.
    pub(crate) fn tell(&self, news: impl FnOnce(&mut Dashboard)) {
        let mut state = self.shared.state();
        news(&mut state.dashboard);
        state.is_new = true;
        self.shared.changed.notify_all();
    }

    /// Prints a sentence above the panel.
    pub(crate) fn say(&self, text: &str) {
        let mut painter = self.shared.painter();
        write(&painter.erase());
        exit::say(text);
        drop(painter);
        self.tell(|_| ());
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was printed where it happened.
            let _ = thread.join();
        }
        write(&self.shared.painter().erase());
    }
}

impl State {
    fn look_at_load(&mut self) {
        let Some(reader) = &mut self.load else { return };
        match reader.look(SystemTime::now()) {
            Look::New(second) => {
                let Second { load, host } = *second;
                self.dashboard.on_load(load);
                if let Some(host) = host {
                    self.dashboard.on_snapshot(Arc::new(host.into()));
                }
            }
            Look::Same => {}
            Look::Nothing => self.dashboard.on_load_end(),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn painter(&self) -> MutexGuard<'_, Painter> {
        self.painter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_until_stopped(&self) {
        while !self.state().stop {
            let host = self.host.latest();
            let size = size();
            let mut state = self.state();
            state.is_new = false;
            if let Some(host) = host {
                state.dashboard.on_snapshot(host);
            }
            state.look_at_load();
            let panel = state.dashboard.draw(size);
            drop(state);
            write(&self.painter().paint(&panel, size));
            self.wait(PAUSE, |state| !state.stop);
            self.wait(REST.saturating_sub(PAUSE), |state| {
                !state.stop && !state.is_new
            });
        }
    }

    fn wait(&self, time: Duration, more: impl FnMut(&mut State) -> bool) {
        // Whether it was the time or the news makes no difference.
        let _ = self.changed.wait_timeout_while(self.state(), time, more);
    }
}

/// In one write where the terminal takes it, so that no half panel is seen.
fn write(text: &str) {
    // A terminal that is gone is told nothing more.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The room of a panel: that of the terminal as it is now, or 80 by 24 when it does not say.
fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let (columns, rows) = match size {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        Ok(_) | Err(_) => (80, 24),
    };
    Size {
        columns: columns.into(),
        rows: usize::from(rows).saturating_sub(FREE_ROWS),
    }
}
