//! The kill switch: settings are looked at again, at most once a second, when a new
//! connection is about to be upgraded.

use crate::{clock, rt};
use core::sync::atomic::{AtomicU64, Ordering};
use saiga_settings::{Settings, Watch};
use saiga_status::Reason;
use std::sync::Mutex;

const PAUSE_NS: u64 = 1_000_000_000;
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

/// Keeps what is needed to look again.
pub(crate) fn keep(watch: Watch) {
    if let Ok(mut slot) = WATCH.lock() {
        *slot = Some(watch);
    }
}

/// Reads the settings again if their files have changed; applies the kill switch.
pub(crate) fn look_again() {
    let now = clock::monotonic_ns();
    if now.saturating_sub(LOOKED_NS.load(Ordering::Relaxed)) < PAUSE_NS {
        return;
    }
    LOOKED_NS.store(now, Ordering::Relaxed);
    let Ok(mut slot) = WATCH.try_lock() else {
        return;
    };
    match slot.as_mut().and_then(Watch::look_again) {
        None => {}
        Some(Ok(fresh)) => apply(&fresh),
        Some(Err(e)) => switch_off(Reason::BadSettings, &e.to_string()),
    }
}

fn apply(fresh: &Settings) {
    if fresh.enabled.value {
        rt::header().enable();
        rt::ENABLED.store(true, Ordering::Release);
    } else {
        switch_off(Reason::KillSwitch, "enabled = false");
    }
}

/// Stays out of every new connection and says why.
pub(crate) fn switch_off(reason: Reason, text: &str) {
    rt::ENABLED.store(false, Ordering::Release);
    rt::header().disable(reason, text);
}
