//! TPC-C 5.11 without a database: random numbers, texts, inputs, the transaction mix, and times.

pub mod deck;
pub mod inputs;
pub mod nurand;
pub mod text;
pub mod timing;

/// Rows of ITEM (§4.3.3.1).
pub const ITEMS: u32 = 100_000;
/// Rows of DISTRICT per warehouse.
pub const DISTRICTS: u32 = 10;
/// Rows of CUSTOMER per district.
pub const CUSTOMERS: u32 = 3000;
/// Orders per district after the load, one for each customer.
pub const ORDERS: u32 = 3000;
/// O_ID of the first order of a district that is undelivered after the load.
pub const FIRST_UNDELIVERED: u32 = 2101;
