//! Asks a server's status page whether its connections run through channels.

use std::rc::Rc;

use saiga_redis::{Acceleration, AccelerationProbe};
use saiga_status::reader::{Page, Socket};

struct StatusPages;

/// The probe that reads status pages.
pub(crate) fn status_pages() -> Rc<dyn AccelerationProbe> {
    Rc::new(StatusPages)
}

impl AccelerationProbe for StatusPages {
    fn observe(&self, pid: u32) -> Result<Acceleration, String> {
        let page = Page::open(pid).map_err(|error| error.to_string())?;
        let snapshot = page.snapshot(u32::MAX).map_err(|error| error.to_string())?;
        if let Some((reason, detail)) = snapshot.disabled {
            return Err(format!(
                "the library stays out of redis-server: {reason:?} {detail}"
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
