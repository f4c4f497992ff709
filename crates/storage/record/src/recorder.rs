//! The recording: events in, scans beside them, rows of the trace out.
//!
//! One thread does it all, in steps that its owner asks for. The kernel keeps events meanwhile; scans and syncs, which may
//! take long, fetch them in between.

use std::fs::File;
use std::io::BufWriter;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use saiga_blocktrace::{Event, Operation, Tap, TapError, Via};
use saiga_ftl::trace::{Op, Recorded, Sampling, WriteError, Writer};

use crate::clock::now_ns;
use crate::events::Waiting;
use crate::ground::{Ground, GroundError};
use crate::output::{Output, OutputError};
use crate::scan::{OURSELVES, Scan, Scanner};
use crate::sync::sync;
use crate::tally::Tally;

/// Between two scans at least, and so many times as long as the last one took.
const SCAN_PAUSE: Duration = Duration::from_millis(250);
const SCAN_SHARE: u32 = 20;
/// How far the times of files lag behind: a tick of the slowest kernel.
const TIMES_NS: u64 = 10_000_000;
/// Rows that are not cut off by a page of the file's buffer.
const BUFFER: usize = 1 << 20;

/// What is recorded, and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directories of databases.
    pub dirs: Vec<PathBuf>,
    /// The trace; it must not exist.
    pub out: PathBuf,
    /// Room for events that wait in the kernel: a power of two.
    pub buffer_bytes: u32,
    /// The way by which events come, if only one will do.
    pub via: Option<Via>,
    /// Which part of the pages the trace is to have; all, if not said.
    pub sampling: Option<Sampling>,
}

/// Why there is no recording, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A directory cannot be recorded.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// A directory cannot be opened.
    #[error("cannot open {}: {error}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file would have two names.
    #[error("{} is within {}: give the outer one only", inner.display(), outer.display())]
    Nested {
        /// The one that is too much.
        inner: PathBuf,
        /// The other.
        outer: PathBuf,
    },
    /// The kernel tells no writes.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The trace's file cannot be made.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The user gave up before it had begun.
    #[error("interrupted; nothing was recorded")]
    Interrupted,
}

/// A recording that goes on. Dropped without [`finish`](Self::finish), it leaves nothing.
#[derive(Debug)]
pub struct Recorder {
    dirs: Vec<PathBuf>,
    scanner: Scanner,
    taps: Taps,
    waiting: Waiting,
    trace: Option<Sink>,
    began_ns: u64,
    /// The time of the last row.
    last_ns: u64,
    next_scan: Instant,
    tally: Tally,
}

/// Where rows go.
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

    /// Writes a row of what is kept of a range; whether there is any.
    fn row(
        &mut self,
        t_ns: u64,
        range: &Range<u64>,
        op: Op,
        file: Option<&str>,
    ) -> Result<bool, RecordError> {
        let kept = self.sampling.map_or(range.clone(), |it| it.range(range));
        if kept.is_empty() {
            return Ok(false);
        }
        let bytes = kept.end - kept.start;
        self.writer.row(t_ns, kept.start, bytes, op, file)?;
        Ok(true)
    }

    fn keep(self, recorded: Recorded) -> Result<(), RecordError> {
        self.writer.finish(Some(recorded))?;
        Ok(self.output.keep()?)
    }
}

/// One source of events for each file system.
#[derive(Debug)]
struct Taps {
    open: Vec<Tap>,
    buffer_bytes: u32,
    via: Option<Via>,
    /// The first thing that went wrong while a scan was going on.
    failed: Option<TapError>,
}

impl Taps {
    /// One more for each new file system.
    fn follow(&mut self, grounds: &mut dyn Iterator<Item = &Ground>) -> Result<(), TapError> {
        for ground in grounds.skip(self.open.len()) {
            self.open.push(Tap::open(&saiga_blocktrace::Options {
                devices: vec![ground.device],
                buffer_bytes: self.buffer_bytes,
                via: self.via,
            })?);
        }
        Ok(())
    }

    fn fetch(&mut self, waiting: &mut Waiting) {
        for tap in &mut self.open {
            if let Err(error) = tap.read(&mut |event| waiting.push(event)) {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn lost(&self) -> Result<u64, TapError> {
        self.open.iter().map(Tap::lost).sum()
    }
}

impl Recorder {
    /// Looks where everything is, which may take long below many files, and begins, unless the user gives up meanwhile.
    ///
    /// # Errors
    /// A directory cannot be recorded, the kernel tells no writes, or the trace cannot be written.
    pub fn begin(options: &Options, is_given_up: &dyn Fn() -> bool) -> Result<Self, RecordError> {
        let output = Output::new(&options.out)?;
        Self::with(
            &options.dirs,
            options.buffer_bytes,
            options.via,
            Some((output, options.sampling)),
            is_given_up,
        )
    }

    /// The same without a trace: only the [`Tally`] is made.
    ///
    /// # Errors
    /// A directory cannot be recorded, or the kernel tells no writes.
    pub fn tallying(
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
        is_given_up: &dyn Fn() -> bool,
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
        let mut waiting = Waiting::default();
        // File systems that links lead to are found by the scan; with them it begins anew.
        let (began_ns, scan) = loop {
            // What was written before gets its place now, and is not a part of the recording.
            sync(&scanner.places(), &mut || taps.fetch(&mut waiting));
            taps.follow(&mut scanner.spaces().iter().map(|space| &space.ground))?;
            let began_ns = now_ns();
            let scan = scanner.scan(&mut || {
                taps.fetch(&mut waiting);
                if is_given_up() {
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
        scanner.has_begun = true;
        let trace = output.map(|(output, sampling)| Sink::new(output, &dirs, sampling));
        let trace = trace.transpose()?;
        let mut recorder = Self {
            dirs,
            scanner,
            taps,
            waiting,
            trace,
            began_ns,
            last_ns: 0,
            next_scan: Instant::now() + SCAN_PAUSE,
            tally: Tally::default(),
        };
        recorder.present(&scan)?;
        recorder.waiting.learn(scan);
        Ok(recorder)
    }

    /// Writes down what was there at the beginning.
    fn present(&mut self, scan: &Scan) -> Result<(), RecordError> {
        for owned in scan.map.ranges().iter().filter(|owned| owned.is_written) {
            let Some(name) = self.scanner.name(owned.file) else {
                continue;
            };
            if let Some(trace) = &mut self.trace {
                trace.row(0, &(owned.start..owned.end), Op::Present, Some(&name))?;
            }
            self.tally.present += owned.end - owned.start;
        }
        Ok(())
    }

    /// The directories, as the trace names them.
    #[must_use]
    pub fn directories(&self) -> Vec<String> {
        self.dirs
            .iter()
            .map(|dir| dir.to_string_lossy().into_owned())
            .collect()
    }

    /// The file systems that are followed.
    pub fn grounds(&self) -> impl Iterator<Item = &Ground> {
        self.scanner.spaces().iter().map(|space| &space.ground)
    }

    /// Why events do not come by the best way, if they do not.
    #[must_use]
    pub fn why_not_bpf(&self) -> Option<String> {
        let why = self.taps.open.iter().find_map(Tap::bpf_error);
        why.map(ToString::to_string)
    }

    /// What people should know and were not told yet.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.scanner.remarks)
    }

    /// Fetches what has come and, from time to time, looks where everything is. Call it several times a second.
    ///
    /// # Errors
    /// The kernel tells no writes any more, or the trace cannot be written.
    pub fn step(&mut self) -> Result<(), RecordError> {
        self.fetch()?;
        if Instant::now() >= self.next_scan {
            self.scan()?;
            for event in self.waiting.ripe() {
                self.record(&event)?;
            }
        }
        Ok(())
    }

    /// What has been recorded so far; what waits for its owner is not in it.
    ///
    /// # Errors
    /// The kernel does not say what was lost.
    pub fn tally(&mut self) -> Result<&Tally, RecordError> {
        self.tally.lost = self.taps.lost()?;
        self.tally.duration_ns = now_ns().saturating_sub(self.began_ns);
        Ok(&self.tally)
    }

    /// Writes what is in memory to the drive, which is recorded, too, and gives the trace its name.
    ///
    /// # Errors
    /// The trace cannot be written; it is gone then.
    pub fn finish(mut self) -> Result<(Tally, Vec<String>), RecordError> {
        sync(&self.scanner.places(), &mut || {
            self.taps.fetch(&mut self.waiting);
        });
        self.fetch()?;
        let end_ns = now_ns();
        self.tally()?;
        // The first sees what was there at the end, the second what got its place late.
        self.scan()?;
        self.scan()?;
        for event in self.waiting.before(end_ns) {
            self.record(&event)?;
        }
        let mut remarks = self.remarks();
        let (placeless, shared) = self.scanner.oddities();
        for (bytes, what) in [
            (
                placeless,
                "have no place of their own on the drive (inline, compressed) and are not told",
            ),
            (
                shared,
                "are shared by several files (reflinks); the first one has them",
            ),
        ] {
            if bytes > 0 {
                remarks.push(format!("{bytes} bytes of the files {what}"));
            }
        }
        drop(self.taps);
        if let Some(trace) = self.trace {
            trace.keep(Recorded {
                duration_ns: self.tally.duration_ns,
                lost: self.tally.lost,
            })?;
        }
        Ok((self.tally, remarks))
    }

    fn fetch(&mut self) -> Result<(), RecordError> {
        self.taps.fetch(&mut self.waiting);
        self.taps
            .failed
            .take()
            .map_or(Ok(()), |error| Err(error.into()))
    }

    fn scan(&mut self) -> Result<(), RecordError> {
        let began = Instant::now();
        let (taps, waiting) = (&mut self.taps, &mut self.waiting);
        let scan = self.scanner.scan(&mut || {
            taps.fetch(waiting);
            ControlFlow::Continue(())
        })?;
        if let Some(scan) = scan {
            self.waiting.learn(scan);
        }
        self.taps
            .follow(&mut self.scanner.spaces().iter().map(|space| &space.ground))?;
        self.next_scan = Instant::now() + SCAN_PAUSE.max(began.elapsed() * SCAN_SHARE);
        self.fetch()
    }

    /// Writes the rows of one event: one for each file that it belongs to.
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
        for (range, owner) in self.waiting.owners(event, range) {
            if owner == Some(OURSELVES) {
                self.tally.own(event.operation, &range);
                continue;
            }
            let name = owner.and_then(|number| self.scanner.name(number));
            self.row(event, &range, name.as_ref())?;
        }
        Ok(())
    }

    /// Counts whose bytes came with which hint, of those whose file is sure.
    fn count_hint(&mut self, event: &Event, range: Range<u64>) {
        for (range, owner) in self.waiting.sure_owners(event, range) {
            if owner == Some(OURSELVES) {
                continue;
            }
            // A file that was made later has the place of one that was gone before it was looked for.
            let owner =
                owner.filter(|number| self.scanner.born_ns(*number) <= event.t_ns + TIMES_NS);
            let name = owner.and_then(|number| self.scanner.name(number));
            let bytes = range.end - range.start;
            self.tally.hint(name, event.hint, event.len, bytes);
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
                self.tally.write(range, name);
                Op::Write
            }
            Operation::Discard => {
                self.tally.discard(range, name.is_some());
                Op::Discard
            }
        };
        if let Some(trace) = &mut self.trace {
            let is_kept = trace.row(self.last_ns, range, op, name.map(|name| &**name))?;
            self.tally.rows += u64::from(is_kept);
        }
        Ok(())
    }
}

/// Directories by their real paths, none within another.
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
