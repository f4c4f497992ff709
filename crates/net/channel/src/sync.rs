//! Atomics of the rings: the real ones, or loom's when the model is checked.
//!
//! loom treats a sequentially consistent access as acquire-release and knows sequential consistency
//! of fences only. So the model gives each such access a fence: before it, or behind its stores
//! (SAIGA_LOOM_FENCES=before or behind). Either orders a little more than the language does.
//! `tools/loom` tries both, so code that relies on the surplus of one fails under the other. Such a
//! store is a swap in the model: loom does not know that no store comes between the halves of a
//! swap.
//!
//! SAIGA_LOOM_PLANT=FILE:LINE weakens the access in that line: its release, acquire or fence is
//! left out, or only its sequential consistency with FILE:LINE:acqrel. The tests must fail then.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use model::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::atomic::Ordering;
    use std::panic::Location;
    use std::sync::OnceLock;

    /// Position of the fence of a sequentially consistent access.
    #[derive(PartialEq)]
    enum Fences {
        /// Before every access.
        Before,
        /// Behind every access that writes.
        Behind,
    }

    fn fences() -> &'static Fences {
        static CHOSEN: OnceLock<Fences> = OnceLock::new();
        CHOSEN.get_or_init(|| match std::env::var("SAIGA_LOOM_FENCES").as_deref() {
            Ok("before") => Fences::Before,
            _ => Fences::Behind,
        })
    }

    fn fence_if(order: Ordering, here: Fences) {
        if order == Ordering::SeqCst && *fences() == here {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    /// The ordering of the caller's access: `order`, or a weaker one if SAIGA_LOOM_PLANT names it.
    #[track_caller]
    fn planted(order: Ordering) -> Ordering {
        static PLANTED: OnceLock<Option<String>> = OnceLock::new();
        let Some(site) = PLANTED.get_or_init(|| std::env::var("SAIGA_LOOM_PLANT").ok()) else {
            return order;
        };
        let caller = Location::caller();
        let here = format!("{}:{}", caller.file(), caller.line());
        match site.strip_suffix(":acqrel") {
            Some(site) if here.ends_with(site) => Ordering::AcqRel,
            None if here.ends_with(site) => Ordering::Relaxed,
            _ => order,
        }
    }

    /// A fence; none if it is weakened.
    #[track_caller]
    pub(crate) fn fence(order: Ordering) {
        let order = planted(order);
        if order != Ordering::Relaxed {
            loom::sync::atomic::fence(order);
        }
    }

    macro_rules! modelled {
        ($($name:ident: $word:ty;)*) => { $(
            /// loom's atomic, with sequential consistency by fences.
            ///
            /// loom only reorders a store with the latest access before it. If that is a load by
            /// the storing thread, loom does not try the store before an earlier load by another
            /// thread (github.com/tokio-rs/loom/issues/166). So each access also notifies a
            /// condition variable on which no thread waits: such calls order no memory, and loom
            /// reorders each with the one before it.
            #[derive(Debug)]
            pub(crate) struct $name(loom::sync::atomic::$name, loom::sync::Condvar);

            #[expect(clippy::allow_attributes, reason = "one list for two words")]
            #[allow(dead_code, reason = "no word needs every operation")]
            impl $name {
                pub(crate) fn new(value: $word) -> Self {
                    Self(loom::sync::atomic::$name::new(value), loom::sync::Condvar::new())
                }
                #[track_caller]
                pub(crate) fn load(&self, order: Ordering) -> $word {
                    let order = planted(order);
                    self.1.notify_one();
                    fence_if(order, Fences::Before);
                    self.0.load(order)
                }
                #[track_caller]
                pub(crate) fn store(&self, value: $word, order: Ordering) {
                    let order = planted(order);
                    if order == Ordering::SeqCst {
                        self.around(order, || self.0.swap(value, Ordering::Release));
                    } else {
                        self.1.notify_one();
                        self.0.store(value, order);
                    }
                }
                #[track_caller]
                pub(crate) fn swap(&self, value: $word, order: Ordering) -> $word {
                    let order = planted(order);
                    self.around(order, || self.0.swap(value, order))
                }
                #[track_caller]
                pub(crate) fn fetch_or(&self, value: $word, order: Ordering) -> $word {
                    let order = planted(order);
                    self.around(order, || self.0.fetch_or(value, order))
                }
                #[track_caller]
                pub(crate) fn fetch_and(&self, value: $word, order: Ordering) -> $word {
                    let order = planted(order);
                    self.around(order, || self.0.fetch_and(value, order))
                }
                #[track_caller]
                pub(crate) fn fetch_add(&self, value: $word, order: Ordering) -> $word {
                    let order = planted(order);
                    self.around(order, || self.0.fetch_add(value, order))
                }
                #[track_caller]
                pub(crate) fn fetch_sub(&self, value: $word, order: Ordering) -> $word {
                    let order = planted(order);
                    self.around(order, || self.0.fetch_sub(value, order))
                }
                #[track_caller]
                pub(crate) fn compare_exchange(
                    &self,
                    now: $word,
                    new: $word,
                    order: Ordering,
                    failed: Ordering,
                ) -> Result<$word, $word> {
                    let order = planted(order);
                    self.around(order, || self.0.compare_exchange(now, new, order, failed))
                }
                fn around<T>(&self, order: Ordering, access: impl FnOnce() -> T) -> T {
                    self.1.notify_one();
                    fence_if(order, Fences::Before);
                    let was = access();
                    fence_if(order, Fences::Behind);
                    was
                }
            }
        )* };
    }
    modelled! {
        AtomicU32: u32;
        AtomicU64: u64;
    }
}
