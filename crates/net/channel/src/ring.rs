//! One direction of a channel: a byte ring between one producer and one consumer.
//!
//! Positions count bytes since the ring began and never wrap. The producer's word has a FROZEN bit.
//! Setting it, which either end may do, ends the ring at exactly the position beside it, because
//! publishing is a compare-and-swap that fails from then on. That is how a direction goes back to
//! TCP at an exact byte. An empty ring is rewound to its first byte, so small traffic stays within
//! a few KiB. If bytes would wrap around behind unread ones, the ring grows instead, up to its
//! limit: only there does a lagging reader stop its writer. An idle ring gives up its memory, and
//! gets new memory with the next byte.
//!
//! Every word is shared with a process that may be hostile: cursors are checked before use and
//! offsets are masked; at worst the peer harms itself.

mod copy;

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use copy::{copy_in, copy_out};

/// Set in the producer's word once no further byte will be published.
const FROZEN: u64 = 1 << 63;
/// Bit position of the capacity's binary logarithm in the geometry word.
const SHIFT_AT: u32 = 56;
/// Positions use 56 bits: 2^56 bytes, enough for centuries at today's rates.
const POSITION: u64 = (1 << SHIFT_AT) - 1;
/// Logarithm of a ring's capacity when it starts, or gets memory again: two pages.
pub const START_SHIFT: u32 = 13;
/// Logarithm of the largest capacity: as large as TCP's buffers for a lagging reader.
pub const LARGEST_SHIFT: u32 = 22;
/// Logarithm of a capacity at which a full ring waits for its reader. A smaller full ring that
/// cannot grow is out of memory.
pub const PLENTY_SHIFT: u32 = 20;
/// Bytes published at once. The reader of a large message can begin while its writer still copies,
/// and the ring grows by the bytes that the reader leaves, not by the size of the message.
const AT_ONCE: u64 = 1 << 18;
/// Attempts of one read: a signal handler or another process of this side may read in between.
const READS: u32 = 64;
/// Replaces the capacity's logarithm while the ring has no memory. The ring is empty then.
const ASLEEP: u32 = 0;

/// Words that the producer writes; the consumer only clears `want_space`.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ProducerLine {
    /// Bytes published so far, and the FROZEN bit.
    head: AtomicU64,
    /// Position of the ring's first byte (56 bits), logarithm of its capacity above.
    geometry: AtomicU64,
    /// Bytes that were sent by TCP before the first byte of this ring.
    tcp_total: AtomicU64,
    /// 1 once `tcp_total` is valid: the consumer may finish TCP and change to the ring.
    switched: AtomicU32,
    /// 1 while the producer waits for space.
    want_space: AtomicU32,
}

/// Words that the consumer writes; the producer only clears `armed`.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ConsumerLine {
    /// Bytes consumed so far.
    tail: AtomicU64,
    /// 1 while the consumer asks to be woken for the next publication.
    armed: AtomicU32,
    /// 1 once the consumer watches its doorbells and the ring may be used.
    ready: AtomicU32,
    /// 1 once the consumer has seen `switched` and will not read past `tcp_total` on TCP.
    acknowledged: AtomicU32,
    /// 1 once the consumer reads no more from the ring: the producer sends the rest by TCP.
    recalled: AtomicU32,
}

/// Cursors and flags of one direction; its bytes are elsewhere in the segment.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    producer: ProducerLine,
    consumer: ConsumerLine,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<ProducerLine>() == 128 && align_of::<ProducerLine>() == 128);
    assert!(size_of::<ConsumerLine>() == 128 && size_of::<Ring>() == 256);
};

/// The bytes of a ring. Offsets are always below the capacity.
pub trait Storage {
    /// Largest capacity of this storage as a binary logarithm.
    fn max_shift(&self) -> u32;
    /// Logarithm of the capacity to which the ring may grow now. The ring may be larger already.
    fn limit(&self) -> u32 {
        self.max_shift()
    }
    /// Stores `bytes` at `offset`; the range lies within the capacity.
    fn put(&self, offset: usize, bytes: &[u8]);
    /// Loads `bytes.len()` bytes at `offset`; the range lies within the capacity.
    fn take(&self, offset: usize, bytes: &mut [u8]);
}

/// Outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// `n` bytes are published; `notify`: the consumer had asked to be woken.
    Bytes {
        /// Bytes published, at least one.
        n: usize,
        /// Whether the producer must wake the consumer.
        notify: bool,
    },
    /// There is no space.
    Full,
    /// The ring is full or asleep, needed more memory, and `grow` got none. A wait for space might
    /// last for ever.
    NoMemory,
    /// The ring has ended; nothing was published.
    Frozen,
    /// The shared words contradict each other.
    Corrupt,
}

/// Outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// `n` bytes were read; `notify`: the producer waits for space that is now free.
    Bytes {
        /// Bytes delivered, at least one.
        n: usize,
        /// Whether the consumer must wake the producer.
        notify: bool,
    },
    /// There is nothing to read now.
    Empty,
    /// There is nothing to read, and the ring has ended: TCP follows.
    Ended,
    /// The shared words contradict each other.
    Corrupt,
}

/// Consistent copy of the cursors.
#[derive(Debug, Clone, Copy)]
struct View {
    head: u64,
    tail: u64,
    frozen: bool,
    base: u64,
    shift: u32,
}

impl View {
    /// Whether the words are consistent; either side may have written false ones.
    fn is_sane(&self, max_shift: u32) -> bool {
        self.shift <= max_shift
            && self.head <= POSITION
            && self.tail <= self.head
            && self.used() <= self.capacity()
    }

    fn used(&self) -> u64 {
        self.head - self.tail
    }
    /// How many of `wanted` bytes a write takes now.
    fn taken_of(&self, wanted: u64, limit: u32) -> u64 {
        if !self.has_quarter() && !self.can_grow(limit) {
            return 0;
        }
        wanted.min(self.capacity() - self.used())
    }
    /// Whether a quarter of the ring is free.
    fn has_quarter(&self) -> bool {
        self.capacity() - self.used() >= self.capacity() / 4
    }
    /// Whether `more` bytes would overwrite the places of earlier bytes.
    fn goes_around(&self, more: u64) -> bool {
        self.since_base().saturating_add(more) > self.capacity()
    }
    /// Whether the capacity may grow now: as long as no byte has wrapped around, every byte stays
    /// at its offset.
    fn can_grow(&self, max: u32) -> bool {
        self.shift != ASLEEP && self.shift < max && !self.goes_around(0)
    }
    /// Bytes since the ring's first byte; any number if a hostile peer wrote the words.
    fn since_base(&self) -> u64 {
        self.head.wrapping_sub(self.base)
    }
    /// The capacity in bytes; 0 for [`ASLEEP`]. No ring has a capacity of one byte.
    fn capacity(&self) -> u64 {
        (1 << self.shift) & !(1 << ASLEEP)
    }
    /// Physical offset of a position; always below the capacity.
    fn offset(&self, position: u64) -> usize {
        // The mask bounds the value by the capacity, which fits any usize.
        usize::try_from(position.wrapping_sub(self.base) & ((1 << self.shift) - 1)).unwrap_or(0)
    }
}

impl Ring {
    /// Resets every word for a new connection; `shift` is the first capacity's logarithm.
    /// Only for a ring that no other process uses.
    pub fn reset(&self, shift: u32) {
        let Self { producer, consumer } = self;
        producer.head.store(0, Ordering::Relaxed);
        producer
            .geometry
            .store(u64::from(shift) << SHIFT_AT, Ordering::Relaxed);
        producer.tcp_total.store(0, Ordering::Relaxed);
        producer.switched.store(0, Ordering::Relaxed);
        producer.want_space.store(0, Ordering::Relaxed);
        consumer.tail.store(0, Ordering::Relaxed);
        consumer.armed.store(1, Ordering::Relaxed);
        consumer.ready.store(0, Ordering::Relaxed);
        consumer.recalled.store(0, Ordering::Relaxed);
        consumer.acknowledged.store(0, Ordering::SeqCst);
    }

    #[cfg(loom)]
    /// A fresh ring for the model checker.
    pub fn model(shift: u32) -> Self {
        let word = |v| AtomicU64::new(v);
        let flag = |v| AtomicU32::new(v);
        Self {
            producer: ProducerLine {
                head: word(0),
                geometry: word(u64::from(shift) << SHIFT_AT),
                tcp_total: word(0),
                switched: flag(0),
                want_space: flag(0),
            },
            consumer: ConsumerLine {
                tail: word(0),
                armed: flag(0),
                ready: flag(0),
                acknowledged: flag(0),
                recalled: flag(0),
            },
        }
    }

    /// Reads and checks the cursors. `None` if they are inconsistent.
    fn view(&self, max_shift: u32) -> Option<View> {
        // Tail first: it never passes a head that is read later. It may move in between, when a
        // signal handler or another thread reads; then both are read again.
        for _ in 0..4 {
            let view = self.look();
            if view.is_sane(max_shift) {
                return Some(view);
            }
            // A thread that is not the reader may have loaded an old tail, and the geometry of a
            // ring that fell asleep later. Now it finds the tail that the producer found there.
            fence(Ordering::Acquire);
            if self.consumer.tail.load(Ordering::Acquire) == view.tail {
                return None;
            }
        }
        None
    }

    fn look(&self) -> View {
        let tail = self.consumer.tail.load(Ordering::Acquire);
        let word = self.producer.head.load(Ordering::Acquire);
        let geometry = self.producer.geometry.load(Ordering::Relaxed);
        View {
            head: word & !FROZEN,
            tail,
            frozen: word & FROZEN != 0,
            base: geometry & POSITION,
            shift: u32::try_from(geometry >> SHIFT_AT).unwrap_or(u32::MAX),
        }
    }

    /// Publishes as many bytes of `parts`, in order, as fit; none while the ring is not
    /// [`writable`](Self::writable). So up to 256 KiB are published whole, if a quarter of a
    /// full-grown ring holds them: bytes of several writers do not mix when one waits for room.
    ///
    /// `grow` is called with the wanted logarithm when the ring is too small for the message, or
    /// for a large message's next part, and below its storage's limit, so always when it is asleep.
    /// It allocates the memory and returns whether it succeeded.
    pub fn write<P>(&self, storage: &impl Storage, parts: P, grow: impl FnOnce(u32) -> bool) -> Put
    where
        P: IntoIterator<Item: AsRef<[u8]>> + Clone,
    {
        let Some(mut view) = self.view(storage.max_shift()) else {
            return Put::Corrupt;
        };
        if view.frozen {
            return Put::Frozen;
        }
        let sizes = parts.clone().into_iter().map(|p| p.as_ref().len() as u64);
        let (wanted, limit) = (sizes.sum::<u64>().min(AT_ONCE), storage.limit());
        if view.used() == 0 {
            self.rewind(&mut view, limit, wanted, grow);
        } else if view.goes_around(wanted) && view.can_grow(limit) {
            self.enlarge(&mut view, limit, wanted, grow);
        }
        let n = view.taken_of(wanted, limit);
        if n == 0 {
            // A ring below its limit could not grow: memory was short, or its bytes had wrapped
            // around while the limit was lower.
            let grows = view.shift < limit && (view.shift < PLENTY_SHIFT || view.can_grow(limit));
            let starved = wanted > 0 && grows;
            return if starved { Put::NoMemory } else { Put::Full };
        }
        copy_in(storage, &view, parts, n);
        let published = self.producer.head.compare_exchange(
            view.head,
            view.head + n,
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        if let Err(now) = published {
            // Only a freeze can change this word now (writers hold the sender's lock).
            let frozen = now == view.head | FROZEN;
            return if frozen { Put::Frozen } else { Put::Corrupt };
        }
        Put::Bytes {
            n: usize::try_from(n).unwrap_or(0),
            notify: self.claim_armed(),
        }
    }

    /// Grows the ring behind unread bytes, so that a lagging reader stops its writer no earlier
    /// than TCP's buffers would. Must happen before a byte wraps around; afterwards it cannot grow.
    fn enlarge(&self, view: &mut View, max: u32, wanted: u64, grow: impl FnOnce(u32) -> bool) {
        let end = view.since_base() + wanted;
        let target = (64 - (end - 1).leading_zeros()).clamp(view.shift + 1, max);
        if grow(target) {
            view.shift = target;
            let geometry = (u64::from(target) << SHIFT_AT) | view.base;
            // Relaxed: with either geometry, the bytes before this head are in the same places.
            self.producer.geometry.store(geometry, Ordering::Relaxed);
        }
    }

    /// Starts an empty ring at its first byte again, larger if the message needs it.
    fn rewind(&self, view: &mut View, max: u32, wanted: u64, grow: impl FnOnce(u32) -> bool) {
        let mut shift = view.shift;
        if wanted > view.capacity() && shift < max {
            let fitting = 64 - (wanted - 1).leading_zeros();
            let least = if shift == ASLEEP {
                START_SHIFT.min(max)
            } else {
                shift + 1
            };
            let target = fitting.clamp(least, max);
            if grow(target) {
                shift = target;
            }
        }
        if view.base == view.head && view.shift == shift {
            return;
        }
        view.base = view.head;
        view.shift = shift;
        let geometry = (u64::from(shift) << SHIFT_AT) | view.base;
        // Relaxed: the consumer reads it only after the head that publishes bytes under it.
        self.producer.geometry.store(geometry, Ordering::Relaxed);
    }

    /// Bytes published so far, if the ring has memory and is consistent; for the producer.
    pub fn head_while_awake(&self, max_shift: u32) -> Option<u64> {
        let view = self.view(max_shift)?;
        (view.shift != ASLEEP).then_some(view.head)
    }

    /// Leaves an empty ring without memory until the next write; for the producer of an idle
    /// connection. True when the memory of all of the ring's bytes may be released.
    pub fn sleep(&self, max_shift: u32) -> bool {
        let Some(view) = self.view(max_shift) else {
            return false;
        };
        if view.used() != 0 || view.shift == ASLEEP {
            return false;
        }
        let geometry = (u64::from(ASLEEP) << SHIFT_AT) | view.head;
        // A reader of bytes reads a later head and geometry. Release is for `view`: this geometry
        // contradicts a tail from before the ring was empty.
        self.producer.geometry.store(geometry, Ordering::Release);
        true
    }

    /// Delivers bytes into `parts`, in order; `peek` leaves them in the ring. For the consumer; a
    /// ring that it has recalled counts as ended.
    pub fn read(&self, storage: &impl Storage, parts: &mut [&mut [u8]], peek: bool) -> Got {
        self.deliver(storage, parts, peek, || self.recalled())
    }

    /// As [`read`](Self::read), for bytes that a recall has left in the ring: for the producer, and
    /// for the consumer of a producer that has ended.
    pub fn read_recalled(
        &self,
        storage: &impl Storage,
        parts: &mut [&mut [u8]],
        peek: bool,
    ) -> Got {
        self.deliver(storage, parts, peek, || false)
    }

    fn deliver(
        &self,
        storage: &impl Storage,
        parts: &mut [&mut [u8]],
        peek: bool,
        is_over: impl Fn() -> bool,
    ) -> Got {
        for _ in 0..READS {
            let Some(view) = self.view(storage.max_shift()) else {
                return Got::Corrupt;
            };
            // Checked after the view: a signal handler of this thread that recalls the ring later
            // moves the tail, or leaves these bytes to this read.
            if is_over() {
                return Got::Ended;
            }
            if view.used() == 0 {
                return if view.frozen { Got::Ended } else { Got::Empty };
            }
            let n = copy_out(storage, &view, parts);
            let count = usize::try_from(n).unwrap_or(0);
            if peek {
                fence(Ordering::Acquire); // The bytes are loaded before the tail.
                if self.tail() != view.tail {
                    continue; // As below: these bytes are no longer the next ones.
                }
            }
            if peek || n == 0 {
                return Got::Bytes {
                    n: count,
                    notify: false,
                };
            }
            let moved = self.consumer.tail.compare_exchange(
                view.tail,
                view.tail + n,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            if moved.is_err() {
                continue; // A signal handler of this thread read in between and took the bytes.
            }
            return Got::Bytes {
                n: count,
                notify: self.claim_want_space(&view, n),
            };
        }
        Got::Corrupt // Only the peer can have moved our cursor so often.
    }

    /// Drops `n` bytes that were peeked at while the [tail](Self::tail) was `from`. False, without
    /// dropping any, if the tail has moved since.
    pub fn skip(&self, from: u64, n: u64) -> bool {
        let end = from.wrapping_add(n);
        let tail = &self.consumer.tail;
        tail.compare_exchange(from, end, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// After a publication: whether the consumer had asked to be woken. Clears the request.
    fn claim_armed(&self) -> bool {
        let armed = &self.consumer.armed;
        armed.load(Ordering::SeqCst) != 0 && armed.swap(0, Ordering::SeqCst) != 0
    }

    /// After consumption: whether the producer waits and a quarter of the ring is free.
    fn claim_want_space(&self, view: &View, consumed: u64) -> bool {
        let want = &self.producer.want_space;
        if want.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let free = view.capacity() - (view.used() - consumed);
        free >= view.capacity() / 4 && want.swap(0, Ordering::SeqCst) != 0
    }

    /// Asks for a wake-up at the next publication; true if there is something to read already (or
    /// the ring has ended), in which case no wake-up may follow.
    pub fn arm(&self) -> bool {
        let armed = &self.consumer.armed;
        // In the total order, because a writer may have taken the request for others: before the
        // caller's wait slot was entered, so the caller must not take the old value for its own.
        if armed.load(Ordering::SeqCst) == 0 {
            armed.store(1, Ordering::SeqCst);
        }
        let tail = self.consumer.tail.load(Ordering::Relaxed);
        self.producer.head.load(Ordering::SeqCst) != tail
    }

    /// Asks for a wake-up once a quarter is free; true if it is already (or the ring has ended).
    pub fn arm_space(&self, limit: u32) -> bool {
        self.producer.want_space.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst); // Orders our flag before the tail that is read next.
        self.writable(limit)
    }

    /// Whether a quarter of the ring is free (as in a ring asleep), it can grow, or it has ended;
    /// for the producer, with its storage's [limit](Storage::limit).
    pub fn writable(&self, limit: u32) -> bool {
        match self.view(LARGEST_SHIFT) {
            None => true,
            Some(v) => v.has_quarter() || v.frozen || v.can_grow(limit),
        }
    }

    /// Whether there is a byte to read.
    pub fn readable(&self) -> bool {
        let tail = self.consumer.tail.load(Ordering::Relaxed);
        let head = self.producer.head.load(Ordering::Acquire) & !FROZEN;
        head != tail
    }

    /// Bytes that writes would take now, if the ring gets the memory up to its `limit`. 0 if less
    /// than a quarter of the ring is free, because a write may take nothing then.
    pub fn room(&self, limit: u32) -> usize {
        let free = self.view(LARGEST_SHIFT).map_or(0, |v| match v.shift {
            ASLEEP => 1 << START_SHIFT.min(limit),
            _ if v.can_grow(limit) => (1 << limit) - v.since_base(),
            _ if v.has_quarter() => v.capacity() - v.used(),
            _ => 0,
        });
        usize::try_from(free).unwrap_or(0)
    }

    /// Bytes published and not consumed yet; `None` if the words are inconsistent.
    pub fn pending(&self, max_shift: u32) -> Option<u64> {
        self.view(max_shift).map(|v| v.used())
    }

    /// Ends the ring at the bytes published so far. Either end may do so; idempotent.
    pub fn freeze(&self) {
        self.producer.head.fetch_or(FROZEN, Ordering::SeqCst);
    }

    /// Whether the ring has ended.
    pub fn frozen(&self) -> bool {
        self.producer.head.load(Ordering::SeqCst) & FROZEN != 0
    }

    /// Bytes consumed so far.
    pub fn tail(&self) -> u64 {
        self.consumer.tail.load(Ordering::Relaxed)
    }

    /// Producer: publishes that TCP carried `tcp_total` bytes and the ring follows.
    pub fn switch(&self, tcp_total: u64) {
        self.producer.tcp_total.store(tcp_total, Ordering::Relaxed);
        self.producer.switched.store(1, Ordering::SeqCst);
    }

    /// Consumer: the producer's TCP total once it has switched.
    pub fn switched(&self) -> Option<u64> {
        (self.producer.switched.load(Ordering::SeqCst) != 0)
            .then(|| self.producer.tcp_total.load(Ordering::Relaxed))
    }

    /// Consumer: publishes that it watches its doorbells, so the ring may be used.
    pub fn set_ready(&self) {
        self.consumer.ready.store(1, Ordering::SeqCst);
    }

    /// Producer: whether the consumer watches its doorbells.
    pub fn ready(&self) -> bool {
        self.consumer.ready.load(Ordering::SeqCst) != 0
    }

    /// Consumer: publishes that it has seen the switch and reads no TCP byte past its total.
    pub fn acknowledge(&self) {
        self.consumer.acknowledged.store(1, Ordering::SeqCst);
    }

    /// Producer: whether bytes may go by TCP again after a freeze.
    pub fn acknowledged(&self) -> bool {
        self.consumer.acknowledged.load(Ordering::SeqCst) != 0
    }

    /// Consumer: ends the ring and will not read from it any more. The producer takes the unread
    /// bytes back and sends them by TCP, before anything else. Stored before the freeze, so a
    /// thread that sees the ring ended also sees the recall.
    pub fn recall(&self) {
        self.consumer.recalled.store(1, Ordering::SeqCst);
        self.freeze();
    }

    /// Producer: whether the consumer has recalled the ring, so that unread bytes go by TCP.
    pub fn recalled(&self) -> bool {
        self.consumer.recalled.load(Ordering::SeqCst) != 0
    }

    /// Whether the consumer had asked to be woken, as after a publication. Clears the request.
    pub fn take_armed(&self) -> bool {
        self.claim_armed()
    }

    /// Whether the producer waits for space. Clears the request.
    pub fn take_want_space(&self) -> bool {
        self.producer.want_space.swap(0, Ordering::SeqCst) != 0
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
