//! Formats series: a document for people, and four formats for programs.

mod alerts;
mod compat;
mod csv;
mod document;
mod format;
mod json;
mod prometheus;

pub use alerts::ALERTS;
pub use compat::compat;
pub use csv::csv;
pub use document::document;
pub use format::line;
pub use json::{json, probed};
pub use prometheus::prometheus;

#[cfg(test)]
mod tests;
