//! Series for readers: a document for people, and four formats for programs.

mod alerts;
mod compat;
mod csv;
mod document;
mod json;
mod prometheus;
mod words;

pub use alerts::ALERTS;
pub use compat::compat;
pub use csv::csv;
pub use document::document;
pub use json::{json, probed};
pub use prometheus::prometheus;
pub use words::line;

#[cfg(test)]
mod tests;
