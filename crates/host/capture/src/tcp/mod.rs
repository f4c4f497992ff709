//! TCP connections: sequence numbers of both directions, beginnings and endings.

mod connection;
mod direction;
mod table;

pub(crate) use table::Table;
