//! Tests of take, restore and verify: round trips, refusals, failing disks and killed processes.

mod faults;
mod fixture;
mod kills;
mod oracle;
mod random;
mod refusals;
mod round_trip;
mod test_lock;
