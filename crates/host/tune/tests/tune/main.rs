//! Plans, applications and their undoing: on built machines, and on a host that fails.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deadlines;
mod documentation;
mod fake;
mod faults;
mod full_disk;
mod golden;
mod kernel;
mod killed;
mod leaving;
mod live;
mod machines;
mod persistent;
mod plans;
mod properties;
mod queues;
mod recorded;
#[path = "../../src/cores/machines.rs"]
mod shapes;
mod steering;
mod undoing;
mod veth;
