//! Reads from a process's status page whether its connections use channels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_process::proc::Stat;
use saiga_status::reader::{Page, Socket};

/// Descriptors of a server besides those of its clients, with a margin.
const OTHER_DESCRIPTORS: u32 = 64;

/// Maximum number of cached pages, more than the number of processes of the servers of any run.
const MAX_PAGES: usize = 512;

/// Caches the status pages, because opening a page scans all descriptors of the process. The start
/// time tells a process from a later one with the same PID.
#[derive(Default)]
struct StatusPages {
    last: RefCell<BTreeMap<(u32, u64), Page>>,
}

pub(crate) fn status_pages() -> Rc<dyn AccelerationProbe> {
    Rc::new(StatusPages::default())
}

impl AccelerationProbe for StatusPages {
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String> {
        let process = Stat::of(pid).map_err(|error| format!("cannot read its start: {error}"))?;
        let mut last = self.last.borrow_mut();
        if last.len() >= MAX_PAGES && !last.contains_key(&(pid, process.start_ticks)) {
            last.clear();
        }
        let page = match last.entry((pid, process.start_ticks)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Page::open(pid).map_err(|error| error.to_string())?),
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
