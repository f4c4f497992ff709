//! Reports about experiments: [`document`] reports one experiment, [`history`] lists many, and
//! [`run`] has the charts of a single run.
//!
//! Takes the results that `saiga_experiment` wrote and returns the model of `saiga_document`,
//! which renders it as text or HTML. Computes no statistics.

mod experiment;
pub mod history;
pub mod run;

pub use experiment::document;
