//! Queue of writers: the sessions of one process write to a file one at a time, first come, first
//! served.
//!
//! SQLite allows one writer at a time and has no queue: a waiting session sleeps and retries, so a
//! session can wait for seconds while later sessions write. Deliberately absent: sessions of other
//! processes, for which SQLite's own rules apply.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The queue of writers for one file.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: bool,
    waiting: VecDeque<Waiting>,
    tickets: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    call: SyncSender<()>,
}

/// The right to write. Dropping it gives the right to the next session in the queue.
#[derive(Debug)]
pub(super) struct Turn(Arc<Turns>);

impl Turns {
    /// The queue for `path`, shared by all sessions of this process.
    pub(super) fn at(path: &str) -> Arc<Self> {
        static ALL: LazyLock<Mutex<HashMap<PathBuf, Weak<Turns>>>> = LazyLock::new(Mutex::default);
        // A database in memory belongs to one session.
        if path == ":memory:" {
            return Arc::default();
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| Path::new(path).to_owned());
        let mut all = lock(&ALL);
        all.retain(|_, turns| turns.strong_count() > 0);
        let known = all.get(&path).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let fresh = Arc::default();
            all.insert(path, Arc::downgrade(&fresh));
            fresh
        })
    }

    /// Waits for the turn to write; `None` after a timeout.
    pub(super) fn wait(self: &Arc<Self>, patience: Duration) -> Option<Turn> {
        let (call, called) = sync_channel(1);
        let ticket = {
            let mut state = lock(&self.state);
            if !state.taken {
                state.taken = true;
                return Some(Turn(Arc::clone(self)));
            }
            state.tickets += 1;
            let ticket = state.tickets;
            state.waiting.push_back(Waiting { ticket, call });
            ticket
        };
        if called.recv_timeout(patience).is_ok() {
            return Some(Turn(Arc::clone(self)));
        }
        let mut state = lock(&self.state);
        let place = state.waiting.iter().position(|one| one.ticket == ticket);
        match place {
            Some(place) => {
                state.waiting.remove(place);
                None
            }
            // The turn arrived just after the timeout.
            None => Some(Turn(Arc::clone(self))),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        match state.waiting.pop_front() {
            // The channel holds one message, and a waiting session has received none yet.
            Some(next) => drop(next.call.try_send(())),
            None => state.taken = false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state is consistent after a panic: each change is complete before the next begins.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn until_waiting(turns: &Turns, count: usize) {
        while lock(&turns.state).waiting.len() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn turns_are_taken_in_the_order_in_which_sessions_came() {
        let turns = Arc::<Turns>::default();
        let first = turns.wait(LONG).unwrap();
        let (tell, told) = mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..20 {
            let (turns, tell) = (Arc::clone(&turns), tell.clone());
            threads.push(thread::spawn({
                let turns = Arc::clone(&turns);
                move || {
                    let turn = turns.wait(LONG).unwrap();
                    tell.send(number).unwrap();
                    drop(turn);
                }
            }));
            until_waiting(&turns, number + 1);
        }
        drop(first);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let order: Vec<usize> = told.try_iter().collect();
        assert_eq!(order, (0..20).collect::<Vec<usize>>());
        assert!(
            turns.wait(Duration::ZERO).is_some(),
            "the last one has left"
        );
    }

    #[test]
    fn who_leaves_the_queue_is_not_called() {
        let turns = Arc::<Turns>::default();
        let first = turns.wait(LONG).unwrap();
        assert!(turns.wait(Duration::ZERO).is_none());
        drop(first);
        assert!(turns.wait(Duration::ZERO).is_some());
    }

    #[test]
    fn a_file_has_one_queue_and_memory_one_for_each_session() {
        let same = |a, b| Arc::ptr_eq(&Turns::at(a), &Turns::at(b));
        let held = Turns::at("/no/such.db");
        assert!(Arc::ptr_eq(&held, &Turns::at("/no/./such.db")));
        assert!(!same("/no/such.db", "/no/other.db"));
        assert!(!same(":memory:", ":memory:"));
    }
}
