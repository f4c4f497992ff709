//! The memory of all rings of a gateway: a limit, and a queue of those that wait for memory.
//!
//! The adversary is a client that takes memory and does not give it back: it reads nothing, or
//! sends what its server does not read. A ring may grow only while as much as it would have then is
//! free, so that a few rings cannot take all memory (Choudhury and Hahne, "Dynamic queue length
//! thresholds", 1998). A connection without memory waits in a queue, and nothing overtakes it.
//!
//! Each direction has half of the memory. A server may stop reading until its output is taken: with
//! one pool, input that waits for servers could hold the memory that their output needs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saiga_process::proc;

use crate::settings::Tcp;

/// Bytes of a ring when it begins.
const LEAST: u32 = 16 << 10;

/// The memory of all rings of a gateway, which its workers share.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) inbound: Budget,
    pub(crate) outbound: Budget,
}

impl Memory {
    /// The memory that the settings allow; by default, a sixteenth of that of the host.
    #[must_use]
    pub fn of(settings: &Tcp) -> Self {
        let bytes = settings.memory.map_or_else(default_bytes, |bytes| bytes.0);
        Self::new(bytes, settings.buffer.get())
    }

    /// So many bytes for rings of at most `ring_bytes` bytes: at least two rings.
    #[must_use]
    pub fn new(bytes: u64, ring_bytes: u32) -> Self {
        let half = (bytes / 2).max(u64::from(ring_bytes));
        Self {
            inbound: Budget::new(half, ring_bytes),
            outbound: Budget::new(half, ring_bytes),
        }
    }
}

/// A sixteenth of the memory of the host. If /proc does not tell it, that of a small host.
fn default_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let all = proc::bytes(&meminfo, "MemTotal");
    all.unwrap_or(1 << 30) / 16
}

/// The memory of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    /// Bytes of the smallest ring: a grant.
    least: u32,
    used: AtomicU64,
    /// The length of the queue.
    waiting: AtomicUsize,
    queue: Mutex<VecDeque<Arc<Mailbox>>>,
}

/// What a worker is given for connections that wait.
pub(crate) struct Mailbox {
    /// Rings of the smallest size that the worker may make.
    granted: AtomicU32,
    /// Wakes the worker.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox")
            .field("granted", &self.granted)
            .finish_non_exhaustive()
    }
}

impl Mailbox {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            granted: AtomicU32::new(0),
            wake: Box::new(wake),
        })
    }

    /// Takes all grants; returns their number.
    pub(crate) fn take(&self) -> u32 {
        if self.granted.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.granted.swap(0, Ordering::AcqRel)
    }
}

impl Budget {
    pub(crate) fn new(limit: u64, ring_bytes: u32) -> Self {
        Self(Arc::new(Shared {
            limit,
            least: LEAST.min(ring_bytes),
            used: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            queue: Mutex::new(VecDeque::new()),
        }))
    }

    /// Bytes of the smallest ring.
    pub(crate) fn least(&self) -> u32 {
        self.0.least
    }

    /// Takes `more` bytes for a ring that has `own` bytes. Returns whether it may have them.
    pub(crate) fn take(&self, more: u32, own: u32) -> bool {
        self.0.waiting.load(Ordering::SeqCst) == 0 && self.take_now(more, own)
    }

    /// As [`Self::take`], before those that wait.
    fn take_now(&self, more: u32, own: u32) -> bool {
        let (more, own) = (u64::from(more), u64::from(own));
        let fits = |used: u64| {
            let free = self.0.limit.saturating_sub(used);
            (own + more <= free).then(|| used + more)
        };
        let taken = self
            .0
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits);
        taken.is_ok()
    }

    /// Gives bytes back, which may go to those that wait.
    pub(crate) fn give(&self, bytes: u32) {
        self.0.used.fetch_sub(u64::from(bytes), Ordering::SeqCst);
        // A connection queues before it looks at `used`, so one of both sees the other.
        if self.0.waiting.load(Ordering::SeqCst) > 0 {
            self.serve(&mut self.queue());
        }
    }

    /// Queues a connection of the worker with this mailbox. It gets the smallest ring in its turn.
    pub(crate) fn wait(&self, mailbox: &Arc<Mailbox>) {
        let mut queue = self.queue();
        queue.push_back(Arc::clone(mailbox));
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        self.serve(&mut queue);
    }

    /// Gives what is free to those that wait, the first one first.
    fn serve(&self, queue: &mut VecDeque<Arc<Mailbox>>) {
        while !queue.is_empty() && self.take_now(self.0.least, 0) {
            self.0.waiting.fetch_sub(1, Ordering::SeqCst);
            if let Some(mailbox) = queue.pop_front() {
                mailbox.granted.fetch_add(1, Ordering::AcqRel);
                (mailbox.wake)();
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<Mailbox>>> {
        // Each change of the queue is whole.
        let queue = self.0.queue.lock();
        queue.unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all rings.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.0.used.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u32 = 1 << 10;

    /// A budget of so many KiB, and a mailbox that counts its calls.
    fn budget(kib: u32) -> (Budget, Arc<Mailbox>, Arc<AtomicU32>) {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let mailbox = Mailbox::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        (
            Budget::new(u64::from(kib * KIB), 4096 * KIB),
            mailbox,
            calls,
        )
    }

    #[test]
    fn a_ring_grows_while_as_much_is_free() {
        let (budget, _, _) = budget(1024);
        assert!(budget.take(16 * KIB, 0));
        assert!(budget.take(48 * KIB, 16 * KIB), "64 of 1008 that are free");
        assert!(budget.take(192 * KIB, 64 * KIB), "256 of 960");
        assert!(!budget.take(768 * KIB, 256 * KIB), "1024 of 768");
        assert!(budget.take(256 * KIB, 0), "another ring");
        assert_eq!(budget.used(), u64::from(512 * KIB));
        assert!(budget.take(512 * KIB, 0), "what is left");
        assert!(!budget.take(1, 0));
        budget.give(512 * KIB);
        assert!(budget.take(16 * KIB, 0));
    }

    #[test]
    fn those_that_wait_are_served_in_their_order_and_not_overtaken() {
        let (budget, first, first_calls) = budget(32);
        let second = Mailbox::new(|| {});
        assert!(budget.take(32 * KIB, 0));
        budget.wait(&first);
        budget.wait(&second);
        budget.wait(&first);
        assert_eq!((first.take(), second.take()), (0, 0));
        budget.give(16 * KIB);
        assert_eq!((first.take(), second.take()), (1, 0));
        assert_eq!(first_calls.load(Ordering::SeqCst), 1);
        budget.give(8 * KIB);
        assert!(!budget.take(KIB, 0), "the second one waits for it");
        budget.give(8 * KIB);
        assert_eq!((first.take(), second.take()), (0, 1));
        // A grant that nobody needs goes to the next one.
        budget.give(16 * KIB);
        assert_eq!((first.take(), second.take()), (1, 0));
        budget.give(16 * KIB);
        budget.give(16 * KIB);
        assert_eq!(budget.used(), 0);
        assert!(budget.take(16 * KIB, 0), "nobody waits any more");
    }

    #[test]
    fn memory_that_came_back_before_the_queue_is_granted_at_once() {
        let (budget, mailbox, calls) = budget(16);
        budget.wait(&mailbox);
        assert_eq!(mailbox.take(), 1);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    /// Threads take, grow, wait and give: in the end, all is free, and nobody waits.
    #[test]
    fn nothing_is_lost_between_threads() {
        let (budget, _, _) = budget(64);
        let work = |seed: u64| {
            let budget = budget.clone();
            move || {
                let (told, tells) = std::sync::mpsc::channel();
                let mailbox = Mailbox::new(move || {
                    let _gone = told.send(());
                });
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..20_000 {
                    let mut own = 16 * KIB;
                    if !budget.take(own, 0) {
                        budget.wait(&mailbox);
                        tells.recv().unwrap();
                        assert_eq!(mailbox.take(), 1);
                    }
                    if random.bool() && budget.take(KIB, own) {
                        own += KIB;
                    }
                    budget.give(own);
                }
            }
        };
        let threads: Vec<_> = (0..8).map(|seed| std::thread::spawn(work(seed))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.0.waiting.load(Ordering::SeqCst), 0);
    }
}
