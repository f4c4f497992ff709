//! What is in memory goes to the drives, and events are fetched all the while: it may take minutes, and more of them come
//! then than the kernel has room for.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use saiga_streams::tree;

/// Between two calls of `between`.
const PAUSE: Duration = Duration::from_millis(20);

/// Syncs the file systems of some directories. What cannot be written is the database's to find out.
pub(crate) fn sync(dirs: &[PathBuf], between: &mut dyn FnMut()) {
    let all = || {
        for dir in dirs {
            let _ = tree::open_dir(Path::new(dir)).and_then(rustix::fs::syncfs);
        }
    };
    meanwhile(all, between);
}

/// Does some work on another thread, and calls `between` again and again until it is done.
fn meanwhile(work: impl FnOnce() + Send, between: &mut dyn FnMut()) {
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
    fn somebody_is_called_until_the_work_is_done() {
        let (say, hear) = channel();
        let mut calls = 0;
        let work = move || {
            for _ in 0..3 {
                hear.recv().unwrap();
            }
        };
        meanwhile(work, &mut || {
            calls += 1;
            // After the third nobody may be there to hear it.
            let _ = say.send(());
        });
        assert!(calls >= 3, "{calls}");
    }
}
