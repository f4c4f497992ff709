//! What TPC-C 5.11 says, without any database: random numbers, texts, inputs, the mix of
//! transactions, times.

pub mod deck;
pub mod inputs;
pub mod nurand;
pub mod text;
pub mod timing;

/// Rows of ITEM (§4.3.3.1).
pub const ITEMS: u32 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;
/// Customers of a district.
pub const CUSTOMERS: u32 = 3000;
/// Orders of a district after the load, one for each customer.
pub const ORDERS: u32 = 3000;
/// The first order of a district that is not delivered after the load (O_ID).
pub const FIRST_UNDELIVERED: u32 = 2101;
