//! Syncs file systems while events are fetched: a sync may take minutes, and causes more events
//! than the kernel's buffer holds.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use saiga_streams::tree;

/// The pause between two calls of `between`.
const PAUSE: Duration = Duration::from_millis(20);

/// Syncs the file systems of some directories. Errors are ignored: the database gets them itself.
pub(crate) fn sync(dirs: &[PathBuf], between: &mut dyn FnMut()) {
    let all = || {
        for dir in dirs {
            let _ = tree::open_dir(Path::new(dir)).and_then(rustix::fs::syncfs);
        }
    };
    run_polling(all, between);
}

/// Runs `work` in another thread, and calls `between` repeatedly until it ends.
fn run_polling(work: impl FnOnce() + Send, between: &mut dyn FnMut()) {
    std::thread::scope(|scope| {
        let (working, done) = channel::<()>();
        scope.spawn(move || {
            work();
            drop(working);
        });
        while done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            between();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_is_called_until_the_work_ends() {
        let (sender, receiver) = channel();
        let mut calls = 0;
        let work = move || {
            for _ in 0..3 {
                receiver.recv().unwrap();
            }
        };
        run_polling(work, &mut || {
            calls += 1;
            // Fails after the third call if the work has ended.
            let _ = sender.send(());
        });
        assert!(calls >= 3, "{calls}");
    }
}
