//! The recorder: assigns events to files by scans, and writes the rows of the trace.
//!
//! One thread does everything, in steps called by the owner. The kernel buffers events; scans and
//! syncs, which may take long, fetch events in between.

use std::fs::File;
use std::io::BufWriter;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use saiga_blocktrace::{Event, Operation, Tap, TapError, Via};
use saiga_ftl::trace::{Op, Recorded, Sampling, WriteError, Writer};

use crate::backing::{BackingError, BackingVolume};
use crate::clock::now_ns;
use crate::events::PendingEvents;
use crate::output::{Output, OutputError};
use crate::scan::{OWN_OUTPUT, Scan, Scanner};
use crate::sync::sync;
use crate::totals::Totals;

/// The shortest pause between two scans.
const MIN_SCAN_PAUSE: Duration = Duration::from_millis(250);
/// The pause is this many times as long as the last scan took.
const PAUSE_FACTOR: u32 = 20;
/// The granularity of file times: a tick of the slowest kernel.
const FILE_TIME_NS: u64 = 10_000_000;
/// Size of the write buffer for the trace.
const BUFFER: usize = 1 << 20;

/// The settings of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories of the databases.
    pub dirs: Vec<PathBuf>,
    /// The file of the trace, which must not exist.
    pub out: PathBuf,
    /// Size of the kernel's buffer for events, a power of two.
    pub buffer_bytes: u32,
    /// The required source of events; `None` for the best one.
    pub via: Option<Via>,
    /// The sample of pages to record; `None` for all.
    pub sampling: Option<Sampling>,
}

/// An error of recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Backing(#[from] BackingError),
    #[error("cannot open {}: {error}", path.display())]
    Open {
        path: PathBuf,
        error: std::io::Error,
    },
    /// A directory is inside another, so that its files would have two names.
    #[error("{} is within {}: give the outer one only", inner.display(), outer.display())]
    Nested { inner: PathBuf, outer: PathBuf },
    #[error(transparent)]
    Tap(#[from] TapError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The user interrupted the start.
    #[error("interrupted; nothing was recorded")]
    Interrupted,
}

/// A running recording. Dropped without [`finish`](Self::finish), it leaves no file.
#[derive(Debug)]
pub struct Recorder {
    dirs: Vec<PathBuf>,
    scanner: Scanner,
    taps: Taps,
    pending: PendingEvents,
    trace: Option<Sink>,
    began_ns: u64,
    /// The time of the last row, in nanoseconds since the start.
    last_ns: u64,
    next_scan: Instant,
    totals: Totals,
}

/// The output of rows.
#[derive(Debug)]
struct Sink {
    writer: Writer<BufWriter<File>>,
    output: Output,
    sampling: Option<Sampling>,
}

impl Sink {
    fn new(
        output: Output,
        dirs: &[PathBuf],
        sampling: Option<Sampling>,
    ) -> Result<Self, RecordError> {
        let mut writer = Writer::new(BufWriter::with_capacity(BUFFER, output.writer()?))?;
        for dir in dirs {
            writer.directory(&dir.to_string_lossy())?;
        }
        if let Some(sampling) = sampling {
            writer.sampled(sampling)?;
        }
        Ok(Self {
            writer,
            output,
            sampling,
        })
    }

    /// Writes a row for the sampled part of a range. Returns whether there is such a part.
    fn row(
        &mut self,
        t_ns: u64,
        range: &Range<u64>,
        op: Op,
        file: Option<&str>,
    ) -> Result<bool, RecordError> {
        let sampled = self.sampling.map_or(range.clone(), |it| it.range(range));
        if sampled.is_empty() {
            return Ok(false);
        }
        let bytes = sampled.end - sampled.start;
        self.writer.row(t_ns, sampled.start, bytes, op, file)?;
        Ok(true)
    }

    fn keep(self, recorded: Recorded) -> Result<(), RecordError> {
        self.writer.finish(Some(recorded))?;
        Ok(self.output.keep()?)
    }
}

/// The sources of events, one for each file system.
#[derive(Debug)]
struct Taps {
    open: Vec<Tap>,
    buffer_bytes: u32,
    via: Option<Via>,
    /// The first error during a scan.
    failed: Option<TapError>,
}

impl Taps {
    /// Opens a source for each new file system.
    fn follow(
        &mut self,
        volumes: &mut dyn Iterator<Item = &BackingVolume>,
    ) -> Result<(), TapError> {
        for volume in volumes.skip(self.open.len()) {
            self.open.push(Tap::open(&saiga_blocktrace::Options {
                devices: vec![volume.device],
                buffer_bytes: self.buffer_bytes,
                via: self.via,
            })?);
        }
        Ok(())
    }

    fn fetch(&mut self, pending: &mut PendingEvents) {
        for tap in &mut self.open {
            if let Err(error) = tap.read(&mut |event| pending.push(event)) {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn lost(&self) -> Result<u64, TapError> {
        self.open.iter().map(Tap::lost).sum()
    }
}

impl Recorder {
    /// Scans the directories, which may take long with many files, and starts the recording, unless
    /// `is_interrupted`.
    ///
    /// # Errors
    /// A directory cannot be recorded, block writes cannot be followed, or the trace cannot be
    /// written.
    pub fn begin(
        options: &Options,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, RecordError> {
        let output = Output::new(&options.out)?;
        Self::with(
            &options.dirs,
            options.buffer_bytes,
            options.via,
            Some((output, options.sampling)),
            is_interrupted,
        )
    }

    /// Starts a recording without a trace, which only computes [`Totals`].
    ///
    /// # Errors
    /// A directory cannot be recorded, or block writes cannot be followed.
    pub fn without_trace(
        dirs: &[PathBuf],
        buffer_bytes: u32,
        via: Option<Via>,
    ) -> Result<Self, RecordError> {
        Self::with(dirs, buffer_bytes, via, None, &|| false)
    }

    fn with(
        dirs: &[PathBuf],
        buffer_bytes: u32,
        via: Option<Via>,
        output: Option<(Output, Option<Sampling>)>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, RecordError> {
        let dirs = canonical(dirs)?;
        let own = output.as_ref().map(|(output, _)| output.writer());
        let own = own.transpose()?;
        let mut scanner = Scanner::new(dirs.clone(), own)?;
        let mut taps = Taps {
            open: Vec::new(),
            buffer_bytes,
            via,
            failed: None,
        };
        let mut pending = PendingEvents::default();
        // The scan may find further file systems behind links; then start again with them.
        let (began_ns, scan) = loop {
            // Allocate extents for earlier writes, which are not a part of the recording.
            sync(&scanner.sync_dirs(), &mut || taps.fetch(&mut pending));
            taps.follow(&mut scanner.spaces().iter().map(|space| &space.volume))?;
            let began_ns = now_ns();
            let scan = scanner.scan(&mut || {
                taps.fetch(&mut pending);
                if is_interrupted() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            let scan = scan.ok_or(RecordError::Interrupted)?;
            if scanner.spaces().len() == taps.open.len() {
                break (began_ns, scan);
            }
        };
        scanner.has_started = true;
        let trace = output.map(|(output, sampling)| Sink::new(output, &dirs, sampling));
        let trace = trace.transpose()?;
        let mut recorder = Self {
            dirs,
            scanner,
            taps,
            pending,
            trace,
            began_ns,
            last_ns: 0,
            next_scan: Instant::now() + MIN_SCAN_PAUSE,
            totals: Totals::default(),
        };
        recorder.write_present(&scan)?;
        recorder.pending.add_scan(scan);
        Ok(recorder)
    }

    /// Writes rows for the data that files had at the start.
    fn write_present(&mut self, scan: &Scan) -> Result<(), RecordError> {
        for owned in scan.map.ranges().iter().filter(|owned| owned.is_written) {
            let Some(name) = self.scanner.name(owned.file) else {
                continue;
            };
            if let Some(trace) = &mut self.trace {
                trace.row(0, &(owned.start..owned.end), Op::Present, Some(&name))?;
            }
            self.totals.present += owned.end - owned.start;
        }
        Ok(())
    }

    /// Returns the directories by their names in the trace.
    #[must_use]
    pub fn directories(&self) -> Vec<String> {
        self.dirs
            .iter()
            .map(|dir| dir.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the recorded file systems.
    pub fn backing_volumes(&self) -> impl Iterator<Item = &BackingVolume> {
        self.scanner.spaces().iter().map(|space| &space.volume)
    }

    /// Returns the reason if events do not come by BPF, the best source.
    #[must_use]
    pub fn why_not_bpf(&self) -> Option<String> {
        let why = self.taps.open.iter().find_map(Tap::bpf_error);
        why.map(ToString::to_string)
    }

    /// Returns the remarks since the last call.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.scanner.remarks)
    }

    /// Fetches events and, if it is time, scans the directories. Must be called several times a
    /// second.
    ///
    /// # Errors
    /// Events cannot be read, or the trace cannot be written.
    pub fn step(&mut self) -> Result<(), RecordError> {
        self.fetch()?;
        if Instant::now() >= self.next_scan {
            self.scan()?;
            for event in self.pending.take_settled() {
                self.record(&event)?;
            }
        }
        Ok(())
    }

    /// Returns the totals so far, without events that are not assigned to a file yet.
    ///
    /// # Errors
    /// The number of lost events cannot be read.
    pub fn totals(&mut self) -> Result<&Totals, RecordError> {
        self.totals.lost = self.taps.lost()?;
        self.totals.duration_ns = now_ns().saturating_sub(self.began_ns);
        Ok(&self.totals)
    }

    /// Syncs the file systems, records these writes, too, and renames the trace to its final path.
    ///
    /// # Errors
    /// The trace cannot be written; it is removed then.
    pub fn finish(mut self) -> Result<(Totals, Vec<String>), RecordError> {
        sync(&self.scanner.sync_dirs(), &mut || {
            self.taps.fetch(&mut self.pending);
        });
        self.fetch()?;
        let end_ns = now_ns();
        self.totals()?;
        // The first scan has the files at the end, the second extents that were allocated late.
        self.scan()?;
        self.scan()?;
        for event in self.pending.take_before(end_ns) {
            self.record(&event)?;
        }
        let mut remarks = self.remarks();
        let (without_extent, shared) = self.scanner.unusual_bytes();
        for (bytes, what) in [
            (
                without_extent,
                "have no extent of their own (inline, compressed) and are not recorded",
            ),
            (
                shared,
                "are shared by several files (reflinks) and counted for the first one",
            ),
        ] {
            if bytes > 0 {
                remarks.push(format!("{bytes} bytes of the files {what}"));
            }
        }
        drop(self.taps);
        if let Some(trace) = self.trace {
            trace.keep(Recorded {
                duration_ns: self.totals.duration_ns,
                lost: self.totals.lost,
            })?;
        }
        Ok((self.totals, remarks))
    }

    fn fetch(&mut self) -> Result<(), RecordError> {
        self.taps.fetch(&mut self.pending);
        self.taps
            .failed
            .take()
            .map_or(Ok(()), |error| Err(error.into()))
    }

    fn scan(&mut self) -> Result<(), RecordError> {
        let began = Instant::now();
        let (taps, pending) = (&mut self.taps, &mut self.pending);
        let scan = self.scanner.scan(&mut || {
            taps.fetch(pending);
            ControlFlow::Continue(())
        })?;
        if let Some(scan) = scan {
            self.pending.add_scan(scan);
        }
        self.taps
            .follow(&mut self.scanner.spaces().iter().map(|space| &space.volume))?;
        self.next_scan = Instant::now() + MIN_SCAN_PAUSE.max(began.elapsed() * PAUSE_FACTOR);
        self.fetch()
    }

    /// Writes the rows of an event, one for each file.
    fn record(&mut self, event: &Event) -> Result<(), RecordError> {
        let address = self.scanner.address(event.device, event.address);
        let range = address.and_then(|from| Some(from..from.checked_add(event.len)?));
        let Some(range) = range.filter(|_| event.t_ns >= self.began_ns) else {
            return Ok(());
        };
        self.last_ns = self.last_ns.max(event.t_ns - self.began_ns);
        if event.operation == Operation::Write {
            self.count_hint(event, range.clone());
        }
        for (range, owner) in self.pending.owners(event, range) {
            if owner == Some(OWN_OUTPUT) {
                self.totals.own(event.operation, &range);
                continue;
            }
            let name = owner.and_then(|number| self.scanner.name(number));
            self.row(event, &range, name.as_ref())?;
        }
        Ok(())
    }

    /// Counts bytes by hint, for files whose ownership is certain.
    fn count_hint(&mut self, event: &Event, range: Range<u64>) {
        for (range, owner) in self.pending.certain_owners(event, range) {
            if owner == Some(OWN_OUTPUT) {
                continue;
            }
            // A file that was created after the event may have the extents of a file deleted before
            // the scan.
            let owner =
                owner.filter(|number| self.scanner.born_ns(*number) <= event.t_ns + FILE_TIME_NS);
            let name = owner.and_then(|number| self.scanner.name(number));
            let bytes = range.end - range.start;
            self.totals.hint(name, event.hint, event.len, bytes);
        }
    }

    fn row(
        &mut self,
        event: &Event,
        range: &Range<u64>,
        name: Option<&Arc<str>>,
    ) -> Result<(), RecordError> {
        let op = match event.operation {
            Operation::Write => {
                self.totals.write(range, name);
                Op::Write
            }
            Operation::Discard => {
                self.totals.discard(range, name.is_some());
                Op::Discard
            }
        };
        if let Some(trace) = &mut self.trace {
            let is_sampled = trace.row(self.last_ns, range, op, name.map(|name| &**name))?;
            self.totals.rows += u64::from(is_sampled);
        }
        Ok(())
    }
}

/// Resolves the paths of directories, and refuses nested ones.
fn canonical(dirs: &[PathBuf]) -> Result<Vec<PathBuf>, RecordError> {
    let real = dirs.iter().map(|dir| {
        let open = |error| RecordError::Open {
            path: dir.clone(),
            error,
        };
        dir.canonicalize().map_err(open)
    });
    let real: Vec<PathBuf> = real.collect::<Result<_, _>>()?;
    for (number, inner) in real.iter().enumerate() {
        let mut others = real.iter().enumerate();
        let outer = others.find(|(other, outer)| *other != number && inner.starts_with(outer));
        if let Some((_, outer)) = outer {
            return Err(RecordError::Nested {
                inner: inner.clone(),
                outer: outer.clone(),
            });
        }
    }
    Ok(real)
}
