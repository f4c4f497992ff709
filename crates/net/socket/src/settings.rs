//! The settings, and the switches among them that take effect while the process runs.
//!
//! The files are checked for changes, at most once a second, when a new connection is about to be
//! upgraded, or is made while upgrades are off. A switch affects connections that are not upgraded
//! yet.

use crate::{clock, kernel, rt};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use saiga_settings::{Settings, SettingsError, Sources, Watch};
use saiga_status::Reason;
use std::sync::Mutex;

const PAUSE_NS: u64 = 1_000_000_000;
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);
/// Whether upgrades are on or may be switched on.
static ALIVE: AtomicBool = AtomicBool::new(false);
/// Whether settings were read successfully at least once.
static STARTED: AtomicBool = AtomicBool::new(false);
/// One bit for each port whose connections stay on TCP.
static PORTS_OFF: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The state needed to reload the settings.
struct Kept {
    watch: Watch,
    /// Base names of the program: of its file, and of the name it was started by.
    names: [Vec<u8>; 2],
}

/// Reads the settings for the first time and applies them.
pub(crate) fn begin(sources: &Sources<'_>, names: [&[u8]; 2]) {
    let (read, watch) = sources.read();
    let names = names.map(<[u8]>::to_vec);
    obey(read, &names);
    ALIVE.store(true, Ordering::Relaxed);
    if let Ok(mut slot) = KEPT.lock() {
        *slot = Some(Kept { watch, names });
    }
}

/// Whether upgrades are on or may be switched on while the process runs.
pub(crate) fn may_enable() -> bool {
    ALIVE.load(Ordering::Relaxed)
}

/// Whether connections from or to a port stay on TCP.
pub(crate) fn is_port_off(port: u16) -> bool {
    let word = &PORTS_OFF[usize::from(port / 64)];
    word.load(Ordering::Relaxed) & (1 << (port % 64)) != 0
}

/// Reads the settings again if their files have changed, and applies the switches.
pub(crate) fn look_again() {
    let now = clock::monotonic_ns();
    if now.saturating_sub(LOOKED_NS.load(Ordering::Relaxed)) < PAUSE_NS {
        return;
    }
    LOOKED_NS.store(now, Ordering::Relaxed);
    let Ok(mut slot) = KEPT.try_lock() else {
        return;
    };
    let Some(Kept { watch, names }) = slot.as_mut() else {
        return;
    };
    let errno = kernel::errno();
    if let Some(read) = watch.reload_if_changed() {
        obey(read, names);
    }
    kernel::set_errno(errno); // A missing file must not change the application's errno.
}

fn obey(read: Result<Settings, SettingsError>, names: &[Vec<u8>; 2]) {
    let settings = match read {
        Ok(settings) => settings,
        Err(e) => return switch_off(Reason::BadSettings, &e.to_string()),
    };
    if !STARTED.swap(true, Ordering::Relaxed) {
        rt::start(&settings);
    }
    note_ports(&settings.ports_off.value);
    if names.iter().any(|name| settings.is_program_off(name)) {
        switch_off(Reason::DeniedBySettings, "programs_off");
    } else if settings.enabled.value {
        rt::header().enable();
        rt::ENABLED.store(true, Ordering::Release);
    } else {
        switch_off(Reason::KillSwitch, "enabled = false");
    }
}

fn note_ports(off: &[u16]) {
    for (i, word) in PORTS_OFF.iter().enumerate() {
        let here = off.iter().filter(|port| usize::from(**port / 64) == i);
        let bits = here.fold(0u64, |bits, port| bits | 1 << (port % 64));
        if word.load(Ordering::Relaxed) != bits {
            word.store(bits, Ordering::Relaxed);
        }
    }
}

/// Stops upgrades and shows the reason on the status page.
pub(crate) fn switch_off(reason: Reason, text: &str) {
    rt::ENABLED.store(false, Ordering::Release);
    rt::header().disable(reason, text);
}
