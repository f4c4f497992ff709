//! Copies bytes between the caller's parts and a ring's storage, across its physical end.

use super::{Storage, View};

/// Copies the first `n` bytes of `parts` behind the head.
pub(super) fn copy_in<P>(storage: &impl Storage, view: &View, parts: P, n: u64)
where
    P: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut position = view.head;
    let mut left = usize::try_from(n).unwrap_or(0);
    for part in parts {
        let part = part.as_ref();
        let mut rest = &part[..part.len().min(left)];
        left -= rest.len();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(contiguous(view, position, rest.len()));
            storage.put(view.offset(position), now);
            position += now.len() as u64;
            rest = later;
        }
    }
}

/// Copies bytes from the tail into `parts`; returns the number of bytes.
pub(super) fn copy_out(storage: &impl Storage, view: &View, parts: &mut [&mut [u8]]) -> u64 {
    let mut position = view.tail;
    for part in parts {
        let left = usize::try_from(view.head - position).unwrap_or(0);
        let len = part.len().min(left);
        let mut rest = &mut part[..len];
        while !rest.is_empty() {
            let split = contiguous(view, position, rest.len());
            let (now, later) = rest.split_at_mut(split);
            storage.take(view.offset(position), now);
            position += split as u64;
            rest = later;
        }
    }
    position - view.tail
}

/// How many of `len` bytes from `position` lie before the ring's physical end.
fn contiguous(view: &View, position: u64, len: usize) -> usize {
    let to_end = (1usize << view.shift) - view.offset(position);
    len.min(to_end)
}
