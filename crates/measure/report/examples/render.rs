//! Renders a `result.json`: `cargo run -p saiga-report --example render -- result.json out.html`.
//!
//! For developers who change the layout of the report; users call `saiga compare`.

use std::error::Error;

use saiga_document::{html, text};
use saiga_experiment::result::ExperimentResult;
use saiga_report::document;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: render RESULT.json REPORT.html".into());
    };
    let result = ExperimentResult::from_json(&std::fs::read_to_string(input)?)?;
    let report = document(&result);
    print!("{}", text::render(&report, text::Style::plain()));
    std::fs::write(output, html::render(&report))?;
    Ok(())
}
