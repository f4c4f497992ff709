//! Tests of take, restore and verify: round trips, refusals, failing disks and killed processes.

mod faults;
mod fixture;
mod kills;
mod oracle;
mod random;
mod refusals;
mod round_trip;
mod test_lock;

/// The distance between the changes at which processes are killed and disks fail: 1 in `make soak`.
fn distance() -> usize {
    if std::env::var("SAIGA_SOAK").is_ok_and(|value| value == "1") {
        1
    } else {
        3
    }
}
