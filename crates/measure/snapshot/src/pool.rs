//! Runs a function on all items of a list, on several threads; the first error ends the work.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Default limit. More threads did not speed up any disk that was measured.
const MAX_THREADS: usize = 8;

/// One thread per CPU, and at most [`MAX_THREADS`].
pub(crate) fn default_threads() -> NonZeroUsize {
    let cpus = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cpus.min(NonZeroUsize::new(MAX_THREADS).unwrap_or(NonZeroUsize::MIN))
}

/// Calls `work` for each item. Threads take the items in order and work in parallel.
///
/// # Errors
/// Returns the first error that occurs; items that no thread has taken by then are skipped.
pub(crate) fn each<T: Sync, E: Send>(
    threads: NonZeroUsize,
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let worker = || {
        while !failed.load(Relaxed) {
            let Some(item) = items.get(next.fetch_add(1, Relaxed)) else {
                return;
            };
            if let Err(error) = work(item) {
                failed.store(true, Relaxed);
                let mut first = failure.lock().unwrap_or_else(|poison| poison.into_inner());
                first.get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        // The calling thread is one of the workers.
        for _ in 1..threads.get().min(items.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let failure = failure.into_inner();
    match failure.unwrap_or_else(|poison| poison.into_inner()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_or_an_error_ends_the_work() {
        let threads = NonZeroUsize::new(3).unwrap();
        let items: Vec<u64> = (1..=100).collect();
        let sum = Mutex::new(0);
        let add = |item: &u64| {
            *sum.lock().unwrap() += item;
            Ok::<(), u64>(())
        };
        assert_eq!(each(threads, &items, add), Ok(()));
        assert_eq!(*sum.lock().unwrap(), 5050);
        let fails = |item: &u64| if *item == 50 { Err(50) } else { Ok(()) };
        assert_eq!(each(threads, &items, fails), Err(50));
        assert_eq!(each(threads, &[], fails), Ok(()));
    }
}
