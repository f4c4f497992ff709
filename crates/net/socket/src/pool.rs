//! Records that are reused but never unmapped, so that a stale pointer refers to a record of the
//! same type. Addresses come from one reserved range, so a pointer can be recognised. No allocator
//! is called: hooks may run inside another allocator.

#![expect(unsafe_code, reason = "hands out records of a mapped range")]

use crate::lock::Lock;
use crate::reserve::Reserve;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A record that a pool can link while it is free.
pub(crate) trait Record: Sync + Sized {
    /// All-zero memory is a valid, unused record.
    fn next_free(&self) -> &AtomicPtr<Self>;
}

/// A pool of at most `N` records.
#[derive(Debug)]
pub(crate) struct Pool<T, const N: usize> {
    range: Reserve,
    used: AtomicUsize,
    free: AtomicPtr<T>,
    lock: Lock,
}

impl<T: Record + 'static, const N: usize> Pool<T, N> {
    pub(crate) const fn new() -> Self {
        Self {
            range: Reserve::new(),
            used: AtomicUsize::new(0),
            free: AtomicPtr::new(core::ptr::null_mut()),
            lock: Lock::new(),
        }
    }

    /// Takes a record; its content is that of its last use. `None` when all are in use.
    pub(crate) fn take(&self) -> Option<&'static T> {
        let _guard = self.lock.lock()?;
        let free = self.free.load(Ordering::Relaxed);
        if !free.is_null() {
            // SAFETY: records on the free list lie in the mapped range, which is never unmapped.
            let record = unsafe { &*free };
            self.free.store(
                record.next_free().load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
            return Some(record);
        }
        let index = self.used.load(Ordering::Relaxed);
        if index >= N {
            return None;
        }
        let more =
            self.range.begin(N * size_of::<T>()) && self.range.reach((index + 1) * size_of::<T>());
        if !more {
            return None;
        }
        self.used.store(index + 1, Ordering::Relaxed);
        Some(Self::record(self.range.at().cast(), index))
    }

    /// Returns a record to the pool. Its content may change from then on.
    pub(crate) fn put(&self, record: &'static T) {
        let Some(_guard) = self.lock.lock() else {
            return;
        }; // In a signal handler: leak one record.
        record
            .next_free()
            .store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.free
            .store(core::ptr::from_ref(record).cast_mut(), Ordering::Relaxed);
    }

    /// The record at an address, if the address is one of this pool's records.
    pub(crate) fn at(&self, address: u64) -> Option<&'static T> {
        let base = self.range.at().cast::<T>();
        let offset = usize::try_from(address).ok()?.wrapping_sub(base as usize);
        let index = offset / size_of::<T>();
        let ours = !base.is_null()
            && offset % size_of::<T>() == 0
            && index < self.used.load(Ordering::Relaxed);
        ours.then(|| Self::record(base, index))
    }

    /// Every record that was ever taken, in use or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static T> {
        let base = self.range.at().cast::<T>();
        let used = self.used.load(Ordering::Relaxed);
        (0..used).map(move |index| Self::record(base, index))
    }

    /// The record at an index that is, or is about to be, below `used`.
    fn record(base: *mut T, index: usize) -> &'static T {
        // SAFETY: so many records of the range are accessible.
        let at = unsafe { base.add(index) };
        // SAFETY: mapped for ever; zeroed memory is a valid record.
        unsafe { &*at }
    }
}
