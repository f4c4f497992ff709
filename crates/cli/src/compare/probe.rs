//! Asks a process's status page whether its connections run through channels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_status::reader::{Page, Socket};

/// The servers' few descriptors besides those of their clients, with room to spare.
const OTHER_DESCRIPTORS: u32 = 64;

/// Pages kept at most: more than the servers of any one run.
const MAX_PAGES: usize = 16;

/// Keeps the pages that it read last: finding one anew costs a look at every descriptor.
#[derive(Default)]
struct StatusPages {
    last: RefCell<BTreeMap<u32, Page>>,
}

/// The probe that reads status pages.
pub(crate) fn status_pages() -> Rc<dyn AccelerationProbe> {
    Rc::new(StatusPages::default())
}

impl AccelerationProbe for StatusPages {
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String> {
        let mut last = self.last.borrow_mut();
        if !last.contains_key(&pid) {
            if last.len() >= MAX_PAGES {
                last.clear();
            }
            last.insert(pid, Page::open(pid).map_err(|error| error.to_string())?);
        }
        let Some(page) = last.get(&pid) else {
            return Err("its page is gone".to_owned());
        };
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
