//! Documents about experiments: [`document`] reports one, [`history`] compares many, and [`run`]
//! has the charts of a single run.

mod experiment;
pub mod history;
pub mod run;

pub use experiment::document;
