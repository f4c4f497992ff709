//! Documents: one model, rendered as terminal text or as one HTML file.
//!
//! A crate that makes a report builds a [`Document`] from the types of [`model`] and formats its
//! numbers with [`number`]; [`text`] and [`html`] render the document. This crate depends on no
//! other crate of Saiga.

pub mod html;
pub mod model;
mod names;

pub mod number;
pub mod table;
pub mod text;
mod untrusted;

pub use model::Document;
pub use names::nearest;
pub use untrusted::printable;
