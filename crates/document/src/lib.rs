//! Documents: one model, rendered as terminal text or as one HTML file.
//!
//! A crate that reports something builds a [`Document`] from [`model`]'s parts, with numbers
//! formatted by [`number`]; [`text`] and [`html`] render it. Depends on no other crate of Saiga.

pub mod html;
pub mod model;
mod names;
pub mod number;
pub mod text;
mod untrusted;

pub use model::Document;
pub use names::nearest;
