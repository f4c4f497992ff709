//! Reports: one [`Document`] model, three renderers.
//!
//! ```
//! # fn show(result: &saiga_experiment::result::ExperimentResult) -> Result<(), Box<dyn std::error::Error>> {
//! use saiga_report::{document, html, json, text};
//!
//! let report = document(result);
//! print!("{}", text::render(&report, text::Style::plain())); // to a pipe or a terminal
//! let page = html::render(&report); // report.html: one file, no external resource
//! let data = json::render(result)?; // result.json: the result itself
//! # drop((page, data));
//! # Ok(())
//! # }
//! ```
//!
//! [`document`] makes the report of one experiment. Another kind of report (a TPC-C run, write
//! amplification) is another function that returns a [`Document`].

mod experiment;
pub mod html;
pub mod json;
pub mod model;
mod number;
pub mod text;
mod untrusted;

pub use experiment::document;
pub use model::Document;
