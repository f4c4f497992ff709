//! Sums the counters of key look-ups over several servers.

use std::io;

use crate::remote::Lookups;
use crate::server::Server;

/// Returns the sums over `servers`, each counted since the server's start.
pub(crate) fn count(servers: &[&Server]) -> io::Result<Lookups> {
    let mut all = Lookups {
        found: 0,
        missed: 0,
    };
    for server in servers {
        let Lookups { found, missed } = Lookups::of(&server.info("stats")?);
        all.found += found;
        all.missed += missed;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_look_ups_since_the_first_sample_count() {
        let of = |found, missed| Lookups { found, missed };
        assert_eq!(of(40, 20).share_since(of(10, 10)), Some(0.75));
        assert_eq!(of(10, 10).share_since(of(10, 10)), None);
    }
}
