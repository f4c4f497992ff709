//! Memory for the private words of several segments, because a page may have 64 KiB and the words
//! of one segment have eight.
//!
//! A block belongs to the processes that have forked from each other, and each process unmaps it
//! when it uses no part of it. A part is handed out once: another process may go on using it. After
//! a fork a new block begins, so that no process has the words of another one's later segments.

#![expect(unsafe_code, reason = "memory that forked processes share")]

use super::Own;
use crate::layout::LARGEST_PAGE;
use crate::sys::{self, Errno, Sys};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Parts of a block.
const PARTS: usize = (LARGEST_PAGE - size_of::<AtomicU32>()) / size_of::<Own>();
/// At least as many as a process can map segments.
const BLOCKS: usize = 4096;
/// Uses of a block that is being made.
const IN_MAKING: u32 = 1 << 31;

/// A block as it is mapped.
#[repr(C)]
struct Shared {
    parts: [MaybeUninit<Own>; PARTS],
    /// Number of parts that the processes have taken.
    taken: AtomicU32,
}

const _: () = assert!(size_of::<Shared>() <= LARGEST_PAGE);

/// A block in this process.
#[derive(Debug)]
pub(crate) struct Block {
    at: AtomicPtr<Shared>,
    /// Parts that this process uses, and one more while it may take parts. 0: there is no block.
    /// [`IN_MAKING`]: it has no memory yet.
    uses: AtomicU32,
}

static HERE: [Block; BLOCKS] = [const {
    Block {
        at: AtomicPtr::new(core::ptr::null_mut()),
        uses: AtomicU32::new(0),
    }
}; BLOCKS];
/// Index of the block that parts are taken from, `BLOCKS` if there is none; plus `NUMBERS` times
/// the number of calls of [`retire`].
static CURRENT: AtomicUsize = AtomicUsize::new(BLOCKS);
const NUMBERS: usize = 1 << 16;

/// Zeroed words for a segment. The caller calls [`Block::leave`] after their last use.
///
/// # Errors
/// ENOMEM and the other errors of `mmap(2)`.
pub(crate) fn take() -> Sys<(NonNull<Own>, &'static Block)> {
    loop {
        let current = CURRENT.load(Ordering::Acquire);
        let block = HERE.get(current % NUMBERS);
        match block.and_then(|block| Some((block.part()?, block))) {
            Some(taken) if CURRENT.load(Ordering::Acquire) == current => return Ok(taken),
            Some((_, retired)) => retired.leave(),
            None => begin(current)?,
        }
    }
}

/// Takes no further part from the current block. Called before a fork, and after it in both
/// processes. A block that another thread begins between the two calls is shared as well.
pub fn retire() {
    let next = |current| Some((current / NUMBERS + 1) * NUMBERS + BLOCKS);
    let was = CURRENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    let block = was.ok().and_then(|was| HERE.get(was % NUMBERS));
    if let Some(block) = block {
        block.leave();
    }
}

/// Begins a block, unless `current` has changed.
fn begin(current: usize) -> Sys<()> {
    let at = sys::map_shared(size_of::<Shared>())?;
    let is_free = |block: &Block| {
        let claim = block
            .uses
            .compare_exchange(0, IN_MAKING, Ordering::Acquire, Ordering::Relaxed);
        claim.is_ok()
    };
    let Some(next) = HERE.iter().position(is_free) else {
        // SAFETY: no other code knows the mapping.
        unsafe { sys::unmap(at, size_of::<Shared>()) };
        return Err(Errno(libc::ENOMEM));
    };
    let block = &HERE[next];
    block.at.store(at.cast(), Ordering::Relaxed);
    block.uses.store(1, Ordering::Release);
    let index = current % NUMBERS;
    let begun = current - index + next;
    let swap = CURRENT.compare_exchange(current, begun, Ordering::AcqRel, Ordering::Relaxed);
    // After another thread's block, or a fork, the new block is not used.
    let unused = swap.map_or(Some(block), |_| HERE.get(index));
    if let Some(unused) = unused {
        unused.leave();
    }
    Ok(())
}

impl Block {
    /// A part that no segment has had; `None` if there is none.
    fn part(&self) -> Option<NonNull<Own>> {
        let more = |uses| (1..IN_MAKING).contains(&uses).then_some(uses + 1);
        self.uses
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .ok()?;
        let at = self.at.load(Ordering::Relaxed);
        // SAFETY: mapped, because it is in use; zeroed at first and valid for any content.
        let taken = unsafe { &(*at).taken };
        let part = taken.fetch_add(1, Ordering::Relaxed) as usize;
        if part < PARTS {
            // SAFETY: the parts are the beginning of the mapping.
            return NonNull::new(unsafe { at.cast::<Own>().add(part) });
        }
        self.leave();
        None
    }

    /// Ends one use, and unmaps the block after its last one.
    pub(crate) fn leave(&self) {
        let at = self.at.load(Ordering::Relaxed);
        if self.uses.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: no part of it is in use here, and no thread can take one.
            unsafe { sys::unmap(at.cast(), size_of::<Shared>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    /// The tests of this crate make segments, too, so only own parts are looked at.
    #[test]
    fn a_part_is_taken_once_and_a_block_stays_while_one_is_used() {
        let kept = Mutex::new(HashSet::new());
        let first = take().expect("memory");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..300 {
                        let (own, block) = take().expect("memory");
                        // SAFETY: the part is used until `leave`; zeroed at first.
                        let used = unsafe { &own.as_ref().wait_slots_used };
                        assert_eq!(
                            used.swap(1, Ordering::Relaxed),
                            0,
                            "no other segment has it"
                        );
                        if round % 50 == 0 {
                            retire();
                        }
                        if round % 10 == 0 {
                            let is_new = kept.lock().expect("no panic").insert(own.addr());
                            assert!(is_new);
                        } else {
                            block.leave();
                        }
                    }
                });
            }
        });
        // SAFETY: it is used until the next line.
        let used = unsafe { &first.0.as_ref().wait_slots_used };
        assert_eq!(used.load(Ordering::Relaxed), 0);
        first.1.leave();
    }

    #[test]
    fn after_a_fork_the_words_are_in_another_block() {
        let (_before, old) = take().expect("memory");
        retire();
        let (_after, new) = take().expect("memory");
        assert!(!core::ptr::eq(old, new));
        // A thread that began a block before the fork does not make it the current one afterwards.
        let before = CURRENT.load(Ordering::Relaxed);
        retire();
        begin(before).expect("memory");
        assert!(CURRENT.load(Ordering::Relaxed) / NUMBERS > before / NUMBERS);
    }
}
