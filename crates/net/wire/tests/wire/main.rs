//! Properties of the crate on any bytes, and its agreement with `smoltcp::wire`.

mod fuzzed;
mod packets;
mod properties;
mod seeds;
