//! Reads from a process's status page whether its connections use channels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_status::reader::{Page, Socket};

/// Descriptors of a server besides those of its clients, with a margin.
const OTHER_DESCRIPTORS: u32 = 64;

/// Maximum number of cached pages, more than the number of servers in any run.
const MAX_PAGES: usize = 16;

/// Caches the status pages by PID, because opening a page scans all descriptors of the process.
#[derive(Default)]
struct StatusPages {
    last: RefCell<BTreeMap<u32, Page>>,
}

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
            return Err("its status page has disappeared".to_owned());
        };
        let snapshot = page
            .snapshot(clients.saturating_add(OTHER_DESCRIPTORS))
            .map_err(|error| error.to_string())?;
        if let Some((reason, detail)) = snapshot.disabled {
            return Err(format!(
                "the library is disabled in process {pid}: {reason:?} {detail}"
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
