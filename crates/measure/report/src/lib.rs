//! Reports: one [`Document`] model, three renderers.
//!
//! [`document`] makes the report of one experiment, [`history`] makes a page over many, [`run`] has
//! the charts of a single run. Another kind of report (a TPC-C run, write amplification) is another
//! function that returns a [`Document`].

mod experiment;
pub mod history;
pub mod html;
pub mod json;
pub mod model;
mod number;
pub mod run;
pub mod text;
mod untrusted;

pub use experiment::document;
pub use model::Document;
