//! A dashboard at the bottom of the terminal, redrawn by a thread of its own.
//!
//! Callers update it with [`Panel::update`]. The figures of the host come from [`Host`], or from
//! the file of a load that samples the host itself. [`Panel::say`] prints a line above the panel.
//! There is no panel if stderr is not a terminal; callers then print lines. The content of the
//! panel is in `saiga_sampler::dashboard`.

mod painter;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use saiga_sampler::dashboard::{Dashboard, Size};

use crate::exit;
use crate::host::Host;
use crate::load_file::{ReadResult, Reader, Second};
use painter::Painter;

/// Time between two frames without updates: the host has a new row each second.
const REST: Duration = Duration::from_secs(1);
/// Minimum time between two frames, so that runs of some milliseconds do not flood the terminal.
const PAUSE: Duration = Duration::from_millis(200);
/// Rows left for the cursor and for previous output.
const FREE_ROWS: usize = 1;

/// The panel; erased from the terminal on drop.
#[derive(Debug)]
pub(crate) struct Panel {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Separate from the state, so that a blocked terminal does not block updates.
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
    /// Opens a panel on stderr; `None` if stderr is not a terminal that can move its cursor.
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
        // Without a thread, the caller prints lines.
        let thread = Some(thread.ok()?);
        Some(Self { shared, thread })
    }

    /// Also shows the figures that a load writes to this file.
    pub(crate) fn follow(&self, path: &Path) {
        self.shared.state().load = Some(Reader::new(path));
    }

    /// Changes the content.
    pub(crate) fn update(&self, news: impl FnOnce(&mut Dashboard)) {
        let mut state = self.shared.state();
        news(&mut state.dashboard);
        state.is_new = true;
        self.shared.changed.notify_all();
    }

    /// Prints a message above the panel.
    pub(crate) fn say(&self, text: &str) {
        let mut painter = self.shared.painter();
        write(&painter.erase());
        exit::say(text);
        drop(painter);
        self.update(|_| ());
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The panic message was printed when it happened.
            let _ = thread.join();
        }
        write(&self.shared.painter().erase());
    }
}

impl State {
    fn read_load(&mut self) {
        let Some(reader) = &mut self.load else { return };
        match reader.read(SystemTime::now()) {
            ReadResult::New(second) => {
                let Second { load, host } = *second;
                self.dashboard.on_load(load);
                if let Some(host) = host {
                    self.dashboard.on_snapshot(Arc::new(host.into()));
                }
            }
            ReadResult::Same => {}
            ReadResult::Nothing => self.dashboard.on_load_end(),
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
            state.read_load();
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
        // Whether the time passed or an update came makes no difference.
        let _ = self.changed.wait_timeout_while(self.state(), time, more);
    }
}

/// Writes in one call if possible, so that no partial panel is visible.
fn write(text: &str) {
    // Errors are ignored: the terminal may be gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The size of the terminal; 80 by 24 if unknown.
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
