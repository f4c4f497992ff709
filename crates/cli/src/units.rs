//! Numbers for people.

pub(crate) use saiga_whatif::words::{bytes, time};

/// `1 warehouse`, `2 warehouses`.
pub(crate) fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
