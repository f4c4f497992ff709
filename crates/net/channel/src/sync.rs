//! Atomics of the rings: the real ones, or loom's when the model is checked.
//!
//! loom treats a sequentially consistent access as acquire-release and knows sequential consistency
//! of fences only. So the model gives each such access a fence: before it, or behind its stores
//! (SAIGA_LOOM_FENCES=before or behind). Either orders a little more than the language does.
//! `tools/loom` tries both, so code that relies on the surplus of one fails under the other. Such a
//! store is a swap in the model: loom does not know that no store comes between the halves of a
//! swap.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use model::{AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::atomic::Ordering;

    /// Position of the fence of a sequentially consistent access.
    #[derive(PartialEq)]
    enum Fences {
        /// Before every access.
        Before,
        /// Behind every access that writes.
        Behind,
    }

    fn fences() -> &'static Fences {
        static CHOSEN: std::sync::OnceLock<Fences> = std::sync::OnceLock::new();
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

    macro_rules! modelled {
        ($($name:ident: $word:ty;)*) => { $(
            /// loom's atomic, with sequential consistency by fences.
            #[derive(Debug)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            #[expect(clippy::allow_attributes, reason = "one list for two words")]
            #[allow(dead_code, reason = "no word needs every operation")]
            impl $name {
                pub(crate) fn new(value: $word) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }
                pub(crate) fn load(&self, order: Ordering) -> $word {
                    fence_if(order, Fences::Before);
                    self.0.load(order)
                }
                pub(crate) fn store(&self, value: $word, order: Ordering) {
                    if order == Ordering::SeqCst {
                        self.around(order, || self.0.swap(value, Ordering::Release));
                    } else {
                        self.0.store(value, order);
                    }
                }
                pub(crate) fn swap(&self, value: $word, order: Ordering) -> $word {
                    self.around(order, || self.0.swap(value, order))
                }
                pub(crate) fn fetch_or(&self, value: $word, order: Ordering) -> $word {
                    self.around(order, || self.0.fetch_or(value, order))
                }
                pub(crate) fn fetch_add(&self, value: $word, order: Ordering) -> $word {
                    self.around(order, || self.0.fetch_add(value, order))
                }
                pub(crate) fn fetch_sub(&self, value: $word, order: Ordering) -> $word {
                    self.around(order, || self.0.fetch_sub(value, order))
                }
                pub(crate) fn compare_exchange(
                    &self,
                    now: $word,
                    new: $word,
                    order: Ordering,
                    failed: Ordering,
                ) -> Result<$word, $word> {
                    self.around(order, || self.0.compare_exchange(now, new, order, failed))
                }
                fn around<T>(&self, order: Ordering, access: impl FnOnce() -> T) -> T {
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
