//! The files of a result directory: those of BenchmarkSQL, and ours beside them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use saiga_document::html;

use super::directory::{Directory, DirectoryError};
use super::page;
use super::record::Record;
use super::validity::limit;
use crate::driver::Delivered;
use crate::driver::clock::seconds;
use crate::driver::sample::{Ending, Sample};
use crate::latency::{Phase, Series, TrackName};
use crate::spec::deck::Kind;
use crate::spec::timing::MOST_TPMC_PER_WAREHOUSE;

/// Run id in every row; BenchmarkSQL counts runs in a file of its working directory.
const RUN: u32 = 1;

/// `run.properties`: the props file, its password masked.
#[must_use]
pub fn run_properties(record: &Record) -> String {
    let lines = record.conditions.props.iter();
    lines
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect()
}

/// `data/runInfo.csv`.
#[must_use]
pub fn run_info(record: &Record) -> String {
    let conditions = &record.conditions;
    // BenchmarkSQL demands the key; 0 is without a limit there.
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

/// `data/tx_summary.csv`, as BenchmarkSQL's R scripts write it; over the measured interval.
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
        // Writing to a String cannot fail.
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
    let most = MOST_TPMC_PER_WAREHOUSE * f64::from(record.conditions.warehouses);
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

/// `series.csv`: one row for each second.
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
        // Writing to a String cannot fail.
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

/// Files that grow while a run is under way. When one cannot be written any more (a disk is full),
/// the run goes on without it, and the reason is kept.
#[derive(Debug, Default)]
pub struct Streams {
    result: Option<BufWriter<File>>,
    delivery: Option<BufWriter<File>>,
    problem: Option<io::Error>,
}

impl Streams {
    /// Those that are wanted.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub fn create(
        dir: &Directory,
        with_results: bool,
        with_deliveries: bool,
    ) -> Result<Self, DirectoryError> {
        let mut streams = Self::default();
        if with_results {
            let mut file = BufWriter::new(dir.file("data/result.csv")?);
            let header =
                file.write_all(b"run,elapsed,latency,dblatency,ttype,rbk,dskipped,error\n");
            streams.problem = header.err();
            streams.result = Some(file);
        }
        if with_deliveries {
            let mut file = BufWriter::new(dir.file("delivery.csv")?);
            let header = file.write_all(b"queued_ms,w_id,o_carrier_id,d_id,o_id,completed_ms\n");
            streams.problem = streams.problem.take().or(header.err());
            streams.delivery = Some(file);
        }
        Ok(streams)
    }

    /// Adds what ended.
    pub fn take(&mut self, samples: &[Sample], delivered: &[Delivered]) {
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

    /// Writes the rest.
    ///
    /// # Errors
    /// The first one that was met.
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

/// A terminal that carries out its deliveries has two rows for each, as with BenchmarkSQL 5.
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

/// A row for each order, or one without an order for a delivery that found none (§2.7.2.2).
fn write_delivered(file: &mut impl Write, row: &Delivered) -> io::Result<()> {
    let Delivered {
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

/// Writes everything that is made when a run is over.
///
/// # Errors
/// [`DirectoryError`].
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

/// Writes `report.html`, a page that needs nothing but a browser. It repeats the record, so it is
/// written last: without it nothing is lost.
///
/// # Errors
/// [`DirectoryError`].
pub fn write_page(dir: &Directory, record: &Record) -> Result<(), DirectoryError> {
    dir.write("report.html", &html::render(&page::page(record)))
}

/// A record as text.
#[must_use]
pub fn json(record: &Record) -> String {
    // Its keys are texts and its numbers finite, so it can be written.
    serde_json::to_string(record).map_or_else(|error| error.to_string(), |text| text + "\n")
}
