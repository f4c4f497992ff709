//! Redis.

use super::{Resources, Wanted, setting};

/// Redis's own advice in redis.conf: I/O threads only with at least 4 cores, and at most 8.
const MIN_CORES: usize = 4;

pub(super) fn wanted(resources: &Resources) -> Vec<Wanted> {
    let Resources {
        cores,
        connections,
        are_connections_given,
        ..
    } = *resources;
    let mut all = vec![
        setting(
            "tcp-backlog",
            connections.clamp(511, 65_535),
            "connections that arrive together; net.core.somaxconn must be as large",
        )
        .kept_if_higher(!are_connections_given),
        setting(
            "maxclients",
            connections.saturating_add(32).max(10_000),
            "the expected connections, and 32 for Redis itself",
        )
        .kept_if_higher(!are_connections_given),
    ];
    if cores >= MIN_CORES {
        all.push(setting(
            "io-threads",
            (cores / 2).clamp(2, 8),
            "half of the cores, at most 8 (redis.conf)",
        ));
    }
    all
}
