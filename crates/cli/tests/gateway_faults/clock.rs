//! Steps of the clock: a gateway for which each reading of the time of day is a day later or
//! earlier than the last one, over a path that needs its timers.
//!
//! The clock belongs to no namespace, so a library preloaded into the gateway makes the steps.

use std::fs;

use fastrand::Rng;
use saiga_trials::scale::{by_scale, seed};

use crate::device::assert_served;
use crate::support::text;
use crate::world::{Link, OTHER_PORT, PORT, SERVER, Wire, in_world};

/// Replaces the C library's ways to read the time of day.
const STEPS: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t step(void) {
    static unsigned readings;
    return __sync_fetch_and_add(&readings, 1) % 2 ? 86400 : -86400;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, id, now);
    if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += step();
    return status;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
";

#[test]
fn steps_of_the_clock_change_nothing() {
    let mut rng = Rng::with_seed(seed(66));
    in_world(Wire::Tap, Link::Faulty(rng.u64(..)), |world| {
        let name = "lib/steps.so";
        let library = world.saiga.compile(STEPS, &["-shared", "-fPIC"], name);
        let _server = world.redis(PORT, &[]);
        let _other = world.redis(OTHER_PORT, &[]);
        let gateway = world.gateway_with(&[("LD_PRELOAD", text(&library))]);
        let maps = fs::read_to_string(format!("/proc/{}/maps", gateway.pid())).unwrap();
        assert!(maps.contains(name), "the gateway is without the steps");
        let bystander = world.bystander(SERVER, rng.u64(..));
        bystander.progress(by_scale(40, 1_000));
        drop(assert_served(world));
        assert_eq!(bystander.end(), 0, "connections of the bystander");
        world.stop(gateway);
    });
}
