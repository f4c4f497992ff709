//! Trees of every kind, put away, damaged and brought back, on disks that fail and with deaths.

mod company;
mod faults;
mod forest;
mod kills;
mod oracle;
mod random;
mod refusals;
mod round_trip;
