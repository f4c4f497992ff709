//! A lock that keeps tests that start processes apart from all other tests.
//!
//! Between fork and exec a child has all files open and locked that its parent has, including the
//! files of other tests. `check_not_running` would find the child in the directories of these
//! tests.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static LOCK: RwLock<()> = RwLock::new(());

/// Held by a test as long as its files exist.
pub(crate) enum TestLock {
    /// Other tests may run. Two such locks in one thread share one guard, because a second read
    /// lock could deadlock with a waiting writer.
    Shared(#[expect(dead_code, reason = "held")] Rc<RwLockReadGuard<'static, ()>>),
    /// All other tests wait.
    Exclusive(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl TestLock {
    /// The lock for a test that starts no process.
    pub(crate) fn shared() -> Self {
        thread_local! {
            static HELD: RefCell<Weak<RwLockReadGuard<'static, ()>>> = const { RefCell::new(Weak::new()) };
        }
        HELD.with_borrow_mut(|held| {
            if let Some(guard) = held.upgrade() {
                return Self::Shared(guard);
            }
            // The lock protects no data, so a failed test does no harm.
            let guard = Rc::new(LOCK.read().unwrap_or_else(PoisonError::into_inner));
            *held = Rc::downgrade(&guard);
            Self::Shared(guard)
        })
    }

    /// The lock for a test that starts processes.
    pub(crate) fn exclusive() -> Self {
        Self::Exclusive(LOCK.write().unwrap_or_else(PoisonError::into_inner))
    }
}
