//! The files of a result directory, in BenchmarkSQL's formats and in Saiga's own.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use saiga_document::html;

use super::directory::{Directory, DirectoryError};
use super::page;
use super::record::Record;
use super::validity::limit;
use crate::driver::DeliveryResult;
use crate::driver::clock::seconds;
use crate::driver::sample::{Ending, Sample};
use crate::latency::{Phase, Series, TrackName};
use crate::spec::deck::Kind;
use crate::spec::timing::MAX_TPMC_PER_WAREHOUSE;

/// Run number in every row, always 1. BenchmarkSQL counts its runs in a file of its working
/// directory.
const RUN: u32 = 1;

/// `run.properties`: the props file with masked passwords.
#[must_use]
pub fn run_properties(record: &Record) -> String {
    let lines = record.conditions.props.iter();
    lines
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect()
}

#[must_use]
pub fn run_info(record: &Record) -> String {
    let conditions = &record.conditions;
    // BenchmarkSQL requires the field; 0 means no limit.
    let limit = match conditions.pace.as_str() {
        "limited" => conditions.per_min.unwrap_or(0.0),
        _ => 0.0,
    };
    let (keying, thinking) = conditions.keying_thinking;
    let fields = [
        RUN.to_string(),
        "saiga".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
        conditions.db.clone(),
        conditions.session_start.clone(),
        format!("{}", record.run.seconds / 60.0),
        conditions.loaded_warehouses.to_string(),
        conditions.warehouses.to_string(),
        conditions.terminals.to_string(),
        format!("{limit}"),
        format!("{thinking}"),
        format!("{keying}"),
    ];
    format!(
        "run,driver,driverVersion,db,sessionStart,runMins,loadWarehouses,runWarehouses,\
         numSUTThreads,limitTxnsPerMin,thinkTimeMultiplier,keyingTimeMultiplier\n{}\n",
        fields.join(",")
    )
}

/// `data/tx_summary.csv` for the measured interval, in the format that BenchmarkSQL's R scripts
/// read.
#[must_use]
pub fn tx_summary(record: &Record) -> String {
    let mut text =
        "tx_name,tx_count,tx_percent,tx_90th,tx_max,tx_limit,tx_rbk,tx_error,tx_dskipped\n"
            .to_owned();
    let share = |name| {
        record
            .tracks
            .share_percent(Phase::Measured, name)
            .map_or_else(|| "NA".to_owned(), |share| format!("{share:.3}%"))
    };
    let order = [
        TrackName::Of(Kind::NewOrder),
        TrackName::Of(Kind::Payment),
        TrackName::Of(Kind::OrderStatus),
        TrackName::Of(Kind::StockLevel),
        TrackName::Of(Kind::Delivery),
        TrackName::Deferred,
    ];
    for name in order {
        let track = record.tracks.of(Phase::Measured, name);
        let count = track.done() + track.queued;
        let us = |us: Option<u64>| format!("{:.3}s", seconds(us.unwrap_or(0)));
        let percent = |part: u64, of: f64| format!("{:.3}%", 100.0 * part as f64 / of);
        let (rollbacks, skipped) = match name {
            TrackName::Of(Kind::NewOrder) => (
                percent(track.rolled_back, count.max(1) as f64),
                "NA".to_owned(),
            ),
            TrackName::Of(Kind::Delivery) | TrackName::Deferred => {
                ("NA".to_owned(), track.skipped.to_string())
            }
            TrackName::Of(_) => ("NA".to_owned(), "NA".to_owned()),
        };
        let _ = writeln!(
            text,
            "{},{count},{},{},{},{:.1},{rollbacks},{},{skipped}",
            name.name(),
            share(name),
            us(track.latency.quantile_us(0.9)),
            us(track.latency.max_us()),
            limit(name).as_secs_f64(),
            track.failed + track.unknown,
        );
    }
    let most = MAX_TPMC_PER_WAREHOUSE * f64::from(record.conditions.warehouses);
    let of_most = 100.0 * record.tpmc() / most;
    let (tpmc, total) = match record.partial {
        Some(_) => ("tpmC_partial", "tpmTotal_partial"),
        None => ("tpmC", "tpmTotal"),
    };
    let _ = writeln!(
        text,
        "{tpmc},{:.2},{of_most:.3}%,NA,NA,NA,NA,NA,NA",
        record.tpmc()
    );
    let _ = writeln!(
        text,
        "{total},{:.2},NA,NA,NA,NA,NA,NA,NA",
        record.tpm_total()
    );
    text
}

/// `series.csv`: one row per second.
#[must_use]
pub fn series_csv(series: &Series) -> String {
    let mut text = "second,new_order,payment,order_status,delivery,stock_level,rolled_back,failed,\
                    unknown,retries,new_order_p50_ms,new_order_p95_ms,new_order_p99_ms,\
                    response_mean_ms,throughput_per_s,concurrency,backlog\n"
        .to_owned();
    for (at, second) in series.seconds.iter().enumerate() {
        let done = second.done.map(|count| count.to_string()).join(",");
        let quantiles = match second.new_order_us {
            Some(us) => us.map(|us| format!("{:.3}", us as f64 / 1e3)).join(","),
            None => ",,".to_owned(),
        };
        let total = second.total();
        let mean_ms = second.latency_sum_us as f64 / 1e3 / f64::from(total.max(1));
        let _ = writeln!(
            text,
            "{at},{done},{},{},{},{},{quantiles},{mean_ms:.3},{total},{:.3},{}",
            second.rolled_back,
            second.failed,
            second.unknown,
            second.retries,
            second.concurrency(),
            second.backlog,
        );
    }
    text
}

/// Files that are written during a run. After a write error, such as a full disk, the run continues
/// without them, and [`finish`](Self::finish) returns the error.
#[derive(Debug, Default)]
pub struct SampleFiles {
    result: Option<BufWriter<File>>,
    delivery: Option<BufWriter<File>>,
    problem: Option<io::Error>,
}

impl SampleFiles {
    /// Creates the requested files and writes their headers.
    pub fn create(
        dir: &Directory,
        with_results: bool,
        with_deliveries: bool,
    ) -> Result<Self, DirectoryError> {
        let mut files = Self::default();
        if with_results {
            let mut file = BufWriter::new(dir.file("data/result.csv")?);
            let header =
                file.write_all(b"run,elapsed,latency,dblatency,ttype,rbk,dskipped,error\n");
            files.problem = header.err();
            files.result = Some(file);
        }
        if with_deliveries {
            let mut file = BufWriter::new(dir.file("delivery.csv")?);
            let header = file.write_all(b"queued_ms,w_id,o_carrier_id,d_id,o_id,completed_ms\n");
            files.problem = files.problem.take().or(header.err());
            files.delivery = Some(file);
        }
        Ok(files)
    }

    /// Appends samples and deliveries.
    pub fn append(&mut self, samples: &[Sample], delivered: &[DeliveryResult]) {
        if self.problem.is_some() {
            return;
        }
        let result = self.result.as_mut().map_or(Ok(()), |file| {
            samples
                .iter()
                .try_for_each(|sample| write_sample(file, sample))
        });
        let delivery = self.delivery.as_mut().map_or(Ok(()), |file| {
            delivered
                .iter()
                .try_for_each(|row| write_delivered(file, row))
        });
        self.problem = result.and(delivery).err();
    }

    /// Flushes the files. Returns the first write error of the run.
    pub fn finish(self) -> io::Result<()> {
        let Self {
            result,
            delivery,
            problem,
        } = self;
        if let Some(error) = problem {
            return Err(error);
        }
        for mut file in result.into_iter().chain(delivery) {
            file.flush()?;
        }
        Ok(())
    }
}

/// Writes the row of a transaction. A Delivery that a terminal performed itself has two rows, as in
/// BenchmarkSQL 5.
fn write_sample(file: &mut impl Write, sample: &Sample) -> io::Result<()> {
    let row = |file: &mut dyn Write, name: &str| {
        writeln!(
            file,
            "{RUN},{},{},{},{name},{},{},{}",
            sample.ended_us / 1000,
            sample.latency_us() / 1000,
            (sample.ended_us - sample.began_us) / 1000,
            u32::from(sample.ending == Ending::RolledBack),
            sample.skipped,
            u32::from(matches!(sample.ending, Ending::Failed | Ending::Unknown)),
        )
    };
    row(file, TrackName::of(sample).name())?;
    if sample.kind == Kind::Delivery && !sample.deferred && sample.ending != Ending::Queued {
        row(file, TrackName::Deferred.name())?;
    }
    Ok(())
}

/// Writes one row for each delivered order, or one row without an order if the Delivery found none
/// (§2.7.2.2).
fn write_delivered(file: &mut impl Write, row: &DeliveryResult) -> io::Result<()> {
    let DeliveryResult {
        queued_us,
        w_id,
        carrier_id,
        orders,
        completed_us,
    } = row;
    let (queued, completed) = (*queued_us as f64 / 1e3, *completed_us as f64 / 1e3);
    if orders.is_empty() {
        return writeln!(file, "{queued:.3},{w_id},{carrier_id},,,{completed:.3}");
    }
    orders.iter().try_for_each(|(d_id, o_id)| {
        writeln!(
            file,
            "{queued:.3},{w_id},{carrier_id},{d_id},{o_id},{completed:.3}"
        )
    })
}

/// Writes `data/runInfo.csv`, `data/tx_summary.csv`, `series.csv` and `result.json` at the end of a
/// run.
pub fn write_all(dir: &Directory, record: &Record) -> Result<(), DirectoryError> {
    dir.write("data/runInfo.csv", &run_info(record))?;
    dir.write("data/tx_summary.csv", &tx_summary(record))?;
    if let Some(series) = &record.series {
        dir.write("series.csv", &series_csv(series))?;
    }
    let compact = Record {
        series: None,
        ..record.clone()
    };
    dir.write("result.json", &json(&compact))
}

/// Writes `report.html`, which a browser shows without other files. It is written last, because it
/// only repeats the record.
pub fn write_page(dir: &Directory, record: &Record) -> Result<(), DirectoryError> {
    dir.write("report.html", &html::render(&page::page(record)))
}

/// The record as one line of JSON.
#[must_use]
pub fn json(record: &Record) -> String {
    // Map keys are strings, so serialisation cannot fail.
    serde_json::to_string(record).map_or_else(|error| error.to_string(), |text| text + "\n")
}
