//! States that several threads or forked processes share, each with a table of its transitions.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, Ordering};

/// A state with few values, and the events that change it.
pub trait State: Copy + fmt::Debug {
    /// What may happen to the state.
    type Event: Copy;

    /// A number for the state.
    fn encode(self) -> u8;

    /// The state of a number that [`encode`](Self::encode) returned. Memory that is all zero holds
    /// the state with number 0.
    fn decode(number: u8) -> Self;

    /// The state that follows; `None` if the event means nothing in this state.
    fn after(self, event: Self::Event) -> Option<Self>;
}

/// A shared state. [`transition`](Self::transition) is the only way to change it.
#[repr(transparent)]
pub struct StateCell<S>(AtomicU8, PhantomData<S>);

impl<S: State> StateCell<S> {
    /// A cell with this state.
    pub const fn zero() -> Self {
        Self(AtomicU8::new(0), PhantomData)
    }

    /// The state, in one total order with all transitions and all other operations of that order.
    pub fn get(&self) -> S {
        S::decode(self.0.load(Ordering::SeqCst))
    }

    /// The state, in no order with other memory.
    pub fn peek(&self) -> S {
        S::decode(self.0.load(Ordering::Relaxed))
    }

    /// Applies an event, in the total order. Returns the state before if the event changed it: of
    /// several threads with the same event, one gets an answer.
    pub fn transition(&self, event: S::Event) -> Option<S> {
        let after = |number: u8| {
            let next = S::decode(number).after(event)?.encode();
            (next != number).then_some(next)
        };
        let changed = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, after);
        changed.ok().map(S::decode)
    }
}

impl<S: State> fmt::Debug for StateCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.peek().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direction::{TxEvent, TxMode};

    #[test]
    fn a_cell_tells_which_event_changed_it() {
        let cell: StateCell<TxMode> = StateCell::zero();
        assert_eq!(cell.get(), TxMode::Tcp);
        assert_eq!(cell.transition(TxEvent::Switch), Some(TxMode::Tcp));
        assert_eq!(cell.transition(TxEvent::Switch), None, "once");
        assert_eq!(cell.transition(TxEvent::End), Some(TxMode::Ring));
        assert_eq!(cell.transition(TxEvent::Switch), None, "it has ended");
        assert_eq!((cell.get(), cell.peek()), (TxMode::Ended, TxMode::Ended));
    }
}
