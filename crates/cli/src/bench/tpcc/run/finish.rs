//! After a run: the record, its files, and the printed report.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::{Context, bail};
use saiga_document::text::{self, Style};
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::check::Scope;
use saiga_tpcc::db::Server;
use saiga_tpcc::db::value::Stamp;
use saiga_tpcc::driver::{Measurement, Setup};
use saiga_tpcc::results::record::Consistency;
use saiga_tpcc::results::{Conditions, Directory, Record, closing, files, page};
use saiga_tpcc::server_clock::Offset;
use saiga_tpcc::target::Target;

use super::options::Options;
use super::prepare::Destination;
use super::{Start, beside};
use crate::bench::tpcc::check;
use crate::exit;
use crate::host::HostSamples;

pub(super) struct Finished<'t> {
    pub(super) target: &'t Target,
    pub(super) server: Server,
    pub(super) setup: Setup,
    pub(super) loaded_warehouses: u32,
    pub(super) clock: Option<Offset>,
    pub(super) before: Option<Consistency>,
    pub(super) destination: Destination,
    pub(super) measured: Measurement,
    pub(super) start: Start,
    /// The error that kept a file from being written.
    pub(super) problem: Option<anyhow::Error>,
    pub(super) ended: Instant,
}

impl Finished<'_> {
    /// Checks the tables, and writes and prints the record.
    pub(super) fn conclude(
        self,
        options: &Options,
        interrupt: &Interrupt,
        seen: Option<HostSamples>,
    ) -> anyhow::Result<Record> {
        let conditions = self.conditions();
        let Self {
            target,
            clock,
            before,
            destination,
            measured,
            start,
            problem,
            ..
        } = self;
        let started = std::time::UNIX_EPOCH + start.since_1970;
        let started = humantime::format_rfc3339_millis(started).to_string();
        let mut record = Record::new(conditions, measured, started);
        record.clock = clock;
        record.consistency.extend(before);
        if let Some(scope) = options.checks() {
            let looked = check_after(target, &record, scope, interrupt);
            // A missing check must not look like a passed check.
            record.consistency.push(looked.unwrap_or_else(|error| {
                exit::say(&format!(
                    "the tables were not checked after the run: {error:#}"
                ));
                Consistency::missing("after", format!("{error:#}"))
            }));
        }
        // The checks are part of the record.
        record.conclude();
        let host = seen
            .as_ref()
            .and_then(|seen| beside::summary_text(&seen.summary));
        seen.into_iter()
            .for_each(|seen| beside::add_to(&mut record, seen));
        let written = write(&destination, &record);
        print(&record, host.as_deref(), options.json)?;
        let where_to = written
            .context("no result was written; the figures above are all that remains of this run")?;
        if let Some(where_to) = where_to {
            exit::say(&format!("results in {where_to}"));
        }
        let page = match &destination {
            Destination::Directory(dir) => write_page(dir, &record),
            Destination::Worker(_) | Destination::Nowhere => Ok(()),
        };
        // A full disk causes both errors: missing figures are more serious than a missing page.
        match problem {
            Some(error) => Err(error.context("a result file is not complete")),
            None => page.map(|()| record),
        }
    }

    fn conditions(&self) -> Conditions {
        let local_s = self.start.local_s();
        let ran_s = self
            .ended
            .saturating_duration_since(self.start.at)
            .as_secs();
        Conditions {
            props: self.target.props.entries.clone(),
            server: self.server.version.clone(),
            isolation: self.server.isolation.clone(),
            db: self.target.props.db.clone(),
            loaded_warehouses: self.loaded_warehouses,
            started_unix_s: self.start.since_1970.as_secs(),
            session_start: Stamp::of(local_s).to_string(),
            session_end: Stamp::of(local_s.saturating_add_unsigned(ran_s)).to_string(),
            ..Conditions::of(&self.setup)
        }
    }
}

fn write(destination: &Destination, record: &Record) -> anyhow::Result<Option<String>> {
    match destination {
        Destination::Nowhere => Ok(None),
        Destination::Worker(file) => Ok(Some(
            file.write(&files::json(record))?.display().to_string(),
        )),
        Destination::Directory(dir) => {
            dir.write("run.properties", &files::run_properties(record))?;
            files::write_all(dir, record)?;
            Ok(Some(dir.path().display().to_string()))
        }
    }
}

/// Writes the HTML page.
pub(super) fn write_page(dir: &Directory, record: &Record) -> anyhow::Result<()> {
    files::write_page(dir, record).context("all results were written, except the page")?;
    let page = dir.path().join("report.html");
    exit::say(&format!("wrote the page {}", page.display()));
    Ok(())
}

/// Prints the text report, the `host` summary and BenchmarkSQL's last lines, or the record as JSON.
pub(super) fn print(record: &Record, host: Option<&str>, as_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        let compact = Record {
            series: None,
            ..record.clone()
        };
        return out.write_all(files::json(&compact).as_bytes());
    }
    let style = if out.is_terminal() {
        Style::terminal(width())
    } else {
        Style::plain()
    };
    let text = text::render(&page::page(record), style);
    writeln!(out, "{text}")?;
    if let Some(host) = host {
        writeln!(out, "{host}\n")?;
    }
    out.write_all(closing::lines(record).as_bytes())
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(120, |size| usize::from(size.ws_col).max(80))
}

/// Checks the tables after the run, if the server answers: a hanging server would delay the result,
/// and its unfinished transactions would look like violations.
fn check_after(
    target: &Target,
    record: &Record,
    scope: Scope,
    interrupt: &Interrupt,
) -> anyhow::Result<Consistency> {
    if interrupt.raised() {
        bail!("interrupted");
    }
    if record.end == "gave up" {
        bail!("the run was stopped because the server did not answer");
    }
    if record.unanswered > 0 {
        bail!(
            "{} connections still wait for an answer; check later with `saiga bench tpcc check`",
            record.unanswered
        );
    }
    check_tables(target, "after", scope, interrupt)
}

/// Checks whether the tables are consistent.
pub(super) fn check_tables(
    target: &Target,
    when: &str,
    scope: Scope,
    interrupt: &Interrupt,
) -> anyhow::Result<Consistency> {
    let (report, took) = check::check_tables(target, None, scope, interrupt)?;
    Ok(Consistency::of(when, &report, took))
}
