//! What other threads have of a worker: they end it, and tell it of changes of the network.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use mio::Waker;
use saiga_stack::Network;
use saiga_wire::ethernet::Mac;

/// A change that a worker makes between two of its turns.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// The network is another one.
    Network(Network),
    /// The kernel knows a neighbour now, or does not know it any more.
    Neighbour {
        /// Number of the interface in the network.
        interface: usize,
        address: IpAddr,
        mac: Option<Mac>,
    },
}

/// A worker as other threads see it.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    orders: Sender<Order>,
}

#[derive(Debug)]
struct Shared {
    must_stop: AtomicBool,
    waker: Waker,
}

/// The worker's end.
#[derive(Debug)]
pub(super) struct Inbox {
    handle: Handle,
    orders: Receiver<Order>,
}

impl Handle {
    /// The worker ends after its present turn.
    ///
    /// # Errors
    /// If a sleeping worker cannot be woken: it ends at its next event.
    pub fn stop(&self) -> io::Result<()> {
        self.shared.must_stop.store(true, Ordering::Release);
        self.shared.waker.wake()
    }

    /// Gives an order. A worker that has ended does not get it.
    pub(crate) fn order(&self, order: Order) {
        if self.orders.send(order).is_ok() {
            // Without it, the order waits for the next event.
            let _woken = self.shared.waker.wake();
        }
    }
}

impl Inbox {
    /// An inbox whose orders wake the worker by `waker`.
    pub(super) fn new(waker: Waker) -> Self {
        let (sender, orders) = mpsc::channel();
        let shared = Shared {
            must_stop: AtomicBool::new(false),
            waker,
        };
        let handle = Handle {
            shared: Arc::new(shared),
            orders: sender,
        };
        Self { handle, orders }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    pub(super) fn must_stop(&self) -> bool {
        self.handle.shared.must_stop.load(Ordering::Acquire)
    }

    /// The next order, if there is one.
    pub(super) fn next(&self) -> Option<Order> {
        self.orders.try_recv().ok()
    }
}
