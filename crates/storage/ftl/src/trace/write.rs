//! The writer of traces; numbers file names in order of their first row.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{
    COLUMNS, DIRECTORY, FIRST_LINE, Op, RECORDED, Recorded, SAMPLED, SECTOR_BYTES, Sampling, name,
};

/// An error of writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write the trace: {0}")]
    Io(io::Error),
    /// The reader would refuse the row.
    #[error(
        "a row at {t_ns} ns of {len} bytes at {lba} is not valid: it must have at least one sector \
         of {SECTOR_BYTES} bytes, and must not be before the last row"
    )]
    Row { t_ns: u64, lba: u64, len: u64 },
    /// The reader would refuse the length of the recording.
    #[error("a row at {last_ns} ns is after the end of a recording of {duration_ns} ns")]
    AfterTheEnd { last_ns: u64, duration_ns: u64 },
    /// File numbers have 32 bits.
    #[error("too many files for one trace")]
    TooManyFiles,
}

// No `#[from]`: the message would contain the cause twice.
impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A writer of one trace.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    numbers: HashMap<String, u32>,
    before_ns: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a trace; `out` should be buffered.
    ///
    /// # Errors
    /// The output failed.
    pub fn new(mut out: W) -> Result<Self, WriteError> {
        writeln!(out, "{FIRST_LINE}\n{COLUMNS}")?;
        Ok(Self {
            out,
            numbers: HashMap::new(),
            before_ns: 0,
        })
    }

    /// Writes the absolute path of a recorded directory.
    ///
    /// # Errors
    /// The output failed.
    pub fn directory(&mut self, path: &str) -> Result<(), WriteError> {
        writeln!(self.out, "{DIRECTORY}{}", name::escape(path))?;
        Ok(())
    }

    /// Writes the sampling of the pages. May be called once.
    ///
    /// # Errors
    /// The output failed.
    pub fn sampled(&mut self, sampling: Sampling) -> Result<(), WriteError> {
        let [begin, middle, end] = SAMPLED;
        let (one_in, granule) = (sampling.one_in(), sampling.granule_bytes());
        writeln!(self.out, "{begin}{one_in}{middle}{granule}{end}")?;
        Ok(())
    }

    /// Writes a row; `file` is `None` for data without a file.
    ///
    /// # Errors
    /// The output failed, or the reader would refuse the row.
    pub fn row(
        &mut self,
        t_ns: u64,
        lba: u64,
        len: u64,
        op: Op,
        file: Option<&str>,
    ) -> Result<(), WriteError> {
        let is_whole =
            lba.is_multiple_of(SECTOR_BYTES) && len.is_multiple_of(SECTOR_BYTES) && len > 0;
        let is_named = file.is_none_or(|name| !name.is_empty());
        if !is_whole || !is_named || lba.checked_add(len).is_none() || t_ns < self.before_ns {
            return Err(WriteError::Row { t_ns, lba, len });
        }
        self.before_ns = t_ns;
        write!(self.out, "{t_ns},{lba},{len},{},", op.letter())?;
        let Some(file) = file else {
            writeln!(self.out, "-")?;
            return Ok(());
        };
        if let Some(number) = self.numbers.get(file) {
            writeln!(self.out, "{number}")?;
            return Ok(());
        }
        let next = u32::try_from(self.numbers.len()).map_err(|_| WriteError::TooManyFiles)?;
        writeln!(self.out, "{next}={}", name::escape(file))?;
        self.numbers.insert(file.to_owned(), next);
        Ok(())
    }

    /// Ends the trace and returns the flushed output. A recording has its length and lost events;
    /// times of rows are relative to its start.
    ///
    /// # Errors
    /// The output failed, or a row is later than the end.
    pub fn finish(mut self, recorded: Option<Recorded>) -> Result<W, WriteError> {
        if let Some(Recorded { duration_ns, lost }) = recorded {
            let last_ns = self.before_ns;
            if last_ns > duration_ns {
                return Err(WriteError::AfterTheEnd {
                    last_ns,
                    duration_ns,
                });
            }
            let [begin, middle] = RECORDED;
            writeln!(self.out, "{begin}{duration_ns}{middle}{lost}")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Row, read};
    use super::*;

    proptest! {
        /// For any names in any order.
        #[test]
        fn written_rows_are_read_back(
            rows in prop::collection::vec(
                (0..1000_u64, 0..1_u64 << 50, 1..1_u64 << 30, 0..3_usize, prop::option::of("[^\u{0}]{1,9}")),
                0..40,
            ),
        ) {
            let mut writer = Writer::new(Vec::new()).unwrap();
            let (mut t_ns, mut expected) = (0, Vec::new());
            for (pause, lba, len, op, file) in rows {
                t_ns += pause;
                let op = [Op::Present, Op::Write, Op::Discard][op];
                let (lba, len) = (lba * 512, len * 512);
                writer.row(t_ns, lba, len, op, file.as_deref()).unwrap();
                expected.push(((t_ns, lba, len, op), file));
            }
            let text = writer.finish(None).unwrap();
            let trace = read(&text[..]).unwrap();
            let found: Vec<_> = trace.rows.iter().map(|row| {
                let Row { t_ns, lba, len, op, file } = row;
                ((t_ns, lba, len, op), file.map(|file| trace.files[file as usize].clone()))
            }).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn directories_are_read_back() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for path in ["/db/a\n%", "/é"] {
            writer.directory(path).unwrap();
        }
        let text = writer.finish(None).unwrap();
        assert_eq!(read(&text[..]).unwrap().directories, ["/db/a\n%", "/é"]);
    }

    #[test]
    fn the_sampling_is_read_back() {
        let sampling = Sampling::new(10);
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.sampled(sampling.unwrap()).unwrap();
        let text = writer.finish(None).unwrap();
        let line = b"# sampled 1/10, granules of 16384 bytes\n";
        assert!(text.ends_with(line), "{text:?}");
        let trace = read(&text[..]).unwrap();
        assert_eq!((trace.sampled, trace.stand_for(7)), (sampling, 70));
    }

    #[test]
    fn the_length_of_the_recording_is_read_back() {
        let of = |duration_ns| {
            let mut writer = Writer::new(Vec::new()).unwrap();
            writer.row(9, 0, 512, Op::Write, None).unwrap();
            writer.finish(Some(Recorded {
                duration_ns,
                lost: 3,
            }))
        };
        let text = of(60).unwrap();
        assert!(text.ends_with(b"-\n# recorded 60, lost 3\n"), "{text:?}");
        let recorded = read(&text[..]).unwrap().recorded.unwrap();
        assert_eq!((recorded.duration_ns, recorded.lost), (60, 3));
        assert!(of(9).is_ok());
        assert!(matches!(of(8), Err(WriteError::AfterTheEnd { .. })));
    }

    #[test]
    fn the_message_has_the_cause_once() {
        let error = WriteError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(
            error.to_string(),
            "cannot write the trace: no storage space"
        );
    }

    #[test]
    fn rows_that_the_reader_would_refuse_are_not_written() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.row(9, 0, 512, Op::Write, None).unwrap();
        for (t_ns, lba, len, file) in [
            (8, 0, 512, None),
            (9, 1, 512, None),
            (9, 0, 0, None),
            (9, u64::MAX - 511, 1024, None),
            (9, 0, 512, Some("")),
        ] {
            let found = writer.row(t_ns, lba, len, Op::Write, file);
            assert!(
                matches!(found, Err(WriteError::Row { .. })),
                "{t_ns} {lba} {len}"
            );
        }
    }
}
