//! Several threads for a list of work; the first failure ends it.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// More threads than this help no disk that was measured.
const MOST: usize = 8;

/// As many threads as CPUs, within reason.
pub(crate) fn default_threads() -> NonZeroUsize {
    let cpus = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cpus.min(NonZeroUsize::new(MOST).unwrap_or(NonZeroUsize::MIN))
}

/// Does `work` for each item, in order of their places but not one after the other.
///
/// # Errors
/// One of the failures; items that were not begun by then are left out.
pub(crate) fn each<T: Sync, E: Send>(
    threads: NonZeroUsize,
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let labour = || {
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
        // The calling thread works too.
        for _ in 1..threads.get().min(items.len()) {
            scope.spawn(labour);
        }
        labour();
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
    fn all_is_done_once_or_one_failure_ends_it() {
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
