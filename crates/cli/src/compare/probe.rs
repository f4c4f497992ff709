//! Asks a process's status page whether its connections run through channels.

use std::cell::RefCell;
use std::rc::Rc;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_status::reader::{Page, Socket};

/// The servers' few descriptors besides those of their clients, with room to spare.
const OTHER_DESCRIPTORS: u32 = 64;

/// Keeps the page that it read last: finding it anew costs a look at every descriptor.
#[derive(Default)]
struct StatusPages {
    last: RefCell<Option<Page>>,
}

/// The probe that reads status pages.
pub(crate) fn status_pages() -> Rc<dyn AccelerationProbe> {
    Rc::new(StatusPages::default())
}

impl AccelerationProbe for StatusPages {
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String> {
        let mut last = self.last.borrow_mut();
        let page = match last.take().filter(|page| page.pid() == pid) {
            Some(page) => page,
            None => Page::open(pid).map_err(|error| error.to_string())?,
        };
        let page = last.insert(page);
        let snapshot = page
            .snapshot(clients.saturating_add(OTHER_DESCRIPTORS))
            .map_err(|error| error.to_string())?;
        if let Some((reason, detail)) = snapshot.disabled {
            return Err(format!(
                "the library stays out of process {pid}: {reason:?} {detail}"
            ));
        }
        let sum = |of: fn(&Socket) -> u64| snapshot.sockets.iter().map(of).sum();
        Ok(Acceleration {
            upgraded_sockets: snapshot.upgrades,
            channel_bytes: sum(|socket| socket.channel_rx + socket.channel_tx),
            tcp_bytes: sum(|socket| socket.tcp_rx + socket.tcp_tx),
        })
    }
}
