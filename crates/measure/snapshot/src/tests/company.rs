//! Tests that start processes have no company.
//!
//! Between fork and exec a child has open, and locked, whatever its parent has: the files of all
//! tests that run at that moment. It would be found at work in their directories.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static PLACE: RwLock<()> = RwLock::new(());

/// Held by a test as long as it has files.
pub(crate) enum Company {
    /// Others may have some, too. A test that holds it twice holds one lock.
    Any(#[expect(dead_code, reason = "held")] Rc<RwLockReadGuard<'static, ()>>),
    /// Others wait.
    None(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl Company {
    /// For a test that starts nothing.
    pub(crate) fn any() -> Self {
        thread_local! {
            static HELD: RefCell<Weak<RwLockReadGuard<'static, ()>>> = const { RefCell::new(Weak::new()) };
        }
        HELD.with_borrow_mut(|held| {
            if let Some(guard) = held.upgrade() {
                return Self::Any(guard);
            }
            // A test that failed has poisoned nothing.
            let guard = Rc::new(PLACE.read().unwrap_or_else(PoisonError::into_inner));
            *held = Rc::downgrade(&guard);
            Self::Any(guard)
        })
    }

    /// For one that starts processes.
    pub(crate) fn none() -> Self {
        Self::None(PLACE.write().unwrap_or_else(PoisonError::into_inner))
    }
}
