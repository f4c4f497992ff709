//! The reader of traces. It is strict: any invalid line is an error.

mod fault;

use std::io::{self, BufRead, Read as _};

use super::{
    COLUMNS, DIRECTORY, FIRST_LINE, Label, Op, RECORDED, Recorded, Row, SAMPLED, SECTOR_BYTES,
    Sampling, Trace, name,
};

pub use fault::Fault;

/// The longest line: the longest path with every byte escaped, and numbers.
const MAX_LINE_BYTES: u64 = 16 * 1024;

/// The longest request. Requests above 2 TiB are stored in parts, so that the limit bounds the
/// memory of a line.
const MAX_BYTES: u64 = 1 << 50;

/// An error of reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// A line, counted from 1, is not valid.
    #[error("line {line}: {fault}")]
    Line { line: u64, fault: Fault },
}

// No `#[from]`: the message would contain the cause twice.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a whole trace. Lines after the first two that begin with `#` are remarks.
///
/// # Errors
/// The first invalid line, or an error of the input.
pub fn read(mut input: impl BufRead) -> Result<Trace, ReadError> {
    let mut trace = Trace::default();
    let mut line = 0;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        line += 1;
        // One byte more than allowed, to notice a line that is too long.
        let read = (&mut input)
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut buffer)?;
        if read == 0 && line > 2 {
            return Ok(trace);
        }
        add_line(&buffer, line, &mut trace).map_err(|fault| ReadError::Line { line, fault })?;
    }
}

/// Parses a line, which includes its line feed, and adds it to the trace.
fn add_line(bytes: &[u8], line: u64, trace: &mut Trace) -> Result<(), Fault> {
    if line == 1 {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if text != FIRST_LINE {
            let found = text.chars().take(40).collect();
            return Err(Fault::NotATrace { found });
        }
    }
    let Some(bytes) = bytes.strip_suffix(b"\n") else {
        return Err(if bytes.len() as u64 > MAX_LINE_BYTES {
            Fault::TooLong
        } else {
            Fault::CutOff
        });
    };
    let text = std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?;
    match line {
        1 => Ok(()),
        2 if text == COLUMNS => Ok(()),
        2 => Err(Fault::Columns),
        _ if text.starts_with('#') => remark(text, trace),
        _ => {
            let row = row(text, trace)?;
            trace.rows.push(row);
            check_end(trace)
        }
    }
}

/// Parses a remark. It is ignored unless it has a directory, the length or the sampling of the
/// recording.
fn remark(text: &str, trace: &mut Trace) -> Result<(), Fault> {
    let [begin, middle, end] = SAMPLED;
    let sampled = text
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_suffix(end));
    if let Some((one_in, granule)) = sampled.and_then(|rest| rest.split_once(middle)) {
        let (one_in, granule_bytes) = (number("sampled", one_in)?, number("granules", granule)?);
        let sampling = u32::try_from(one_in).ok();
        let sampling = sampling.and_then(|one_in| Sampling::of(one_in, granule_bytes));
        let sampling = sampling.ok_or(Fault::Sampling {
            one_in,
            granule_bytes,
        })?;
        return match trace.sampled.replace(sampling) {
            Some(_) => Err(Fault::SampledTwice),
            None => Ok(()),
        };
    }
    let [begin, middle] = RECORDED;
    let recorded = text.strip_prefix(begin);
    if let Some((duration, lost)) = recorded.and_then(|rest| rest.split_once(middle)) {
        let recorded = Recorded {
            duration_ns: number("recorded", duration)?,
            lost: number("lost", lost)?,
        };
        if trace.recorded.replace(recorded).is_some() {
            return Err(Fault::RecordedTwice);
        }
        return check_end(trace);
    }
    let path = text.strip_prefix(DIRECTORY);
    let Some(path) = path.filter(|path| path.starts_with('/')) else {
        return Ok(());
    };
    let wrong = || Fault::Name {
        text: path.to_owned(),
    };
    trace
        .directories
        .push(name::unescape(path).ok_or_else(wrong)?);
    Ok(())
}

/// Fails if the last row is after the end of the recording, which may be given anywhere in the
/// trace.
fn check_end(trace: &Trace) -> Result<(), Fault> {
    let now = trace.last_row().map_or(0, |row| row.t_ns);
    match trace.recorded {
        Some(Recorded { duration_ns, .. }) if now > duration_ns => Err(Fault::AfterTheEnd {
            now,
            recorded: duration_ns,
        }),
        Some(_) | None => Ok(()),
    }
}

fn row(text: &str, trace: &mut Trace) -> Result<Row, Fault> {
    let fields: Vec<&str> = text.splitn(5, ',').collect();
    let [t_ns, lba, len, op, file] = fields[..] else {
        let found = fields.len();
        return Err(Fault::Fields { found });
    };
    let t_ns = number("t_ns", t_ns)?;
    let (lba, len) = (sectors("lba", lba)?, sectors("len", len)?);
    if len == 0 {
        return Err(Fault::Nothing);
    }
    if len > MAX_BYTES {
        return Err(Fault::Huge { len });
    }
    if lba.checked_add(len).is_none() {
        return Err(Fault::Beyond { lba, len });
    }
    let op = match op {
        "W" => Op::Write,
        "D" => Op::Discard,
        "P" => Op::Present,
        text => {
            let text = text.to_owned();
            return Err(Fault::Op { text });
        }
    };
    if let Some(before) = trace.last_row().map(|row| row.t_ns)
        && t_ns < before
    {
        let now = t_ns;
        return Err(Fault::Backwards { before, now });
    }
    let file = file_number(file, &mut trace.files)?;
    Ok(Row {
        t_ns,
        lba,
        len,
        op,
        file,
    })
}

/// Parses `-`, `7`, or `7=NAME` for a new file 7.
fn file_number(text: &str, files: &mut Vec<String>) -> Result<Option<u32>, Fault> {
    if text == "-" {
        return Ok(None);
    }
    let Some((digits, escaped)) = text.split_once('=') else {
        let number = number("file", text)?;
        let known = u32::try_from(number).ok();
        let known = known.filter(|number| (*number as usize) < files.len());
        return known.map(Some).ok_or(Fault::Unnamed { number });
    };
    let number = number("file", digits)?;
    let next = files.len();
    let new = u32::try_from(number)
        .ok()
        .filter(|new| *new as usize == next && *new < Label::FILES);
    let new = new.ok_or(Fault::Numbering { number, next })?;
    let name = name::unescape(escaped).filter(|name| !name.is_empty());
    files.push(name.ok_or_else(|| Fault::Name {
        text: escaped.to_owned(),
    })?);
    Ok(Some(new))
}

fn sectors(field: &'static str, text: &str) -> Result<u64, Fault> {
    let value = number(field, text)?;
    if value % SECTOR_BYTES != 0 {
        return Err(Fault::Unaligned { field, value });
    }
    Ok(value)
}

/// Parses a number of digits only, without sign or blanks.
fn number(field: &'static str, text: &str) -> Result<u64, Fault> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| is_plain);
    value.ok_or_else(|| Fault::Number {
        field,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# saiga block trace 1\nt_ns,lba,len,op,file\n";

    #[test]
    fn rows_are_read() {
        let text = format!(
            "{HEAD}0,0,8192,P,0=ibdata1\n# a remark\n5,4096,512,W,0\n5,8192,4096,W,1=a,b=%25%0A\n9,0,1024,D,-\n"
        );
        let trace = read(text.as_bytes()).unwrap();
        assert_eq!(trace.files, ["ibdata1", "a,b=%\n"]);
        let row = |t_ns, lba, len, op, file| Row {
            t_ns,
            lba,
            len,
            op,
            file,
        };
        let expected = [
            row(0, 0, 8192, Op::Present, Some(0)),
            row(5, 4096, 512, Op::Write, Some(0)),
            row(5, 8192, 4096, Op::Write, Some(1)),
            row(9, 0, 1024, Op::Discard, None),
        ];
        assert_eq!(trace.rows.iter().collect::<Vec<_>>(), expected);
        assert_eq!(read(HEAD.as_bytes()).unwrap(), Trace::default());
    }

    #[test]
    fn remarks_may_name_directories() {
        let text =
            format!("{HEAD}# directory /a%20b\n# directory none\n0,0,512,W,-\n# directory /c\n");
        let trace = read(text.as_bytes()).unwrap();
        assert_eq!(trace.directories, ["/a b", "/c"]);
    }

    #[test]
    fn a_remark_may_have_the_length_of_the_recording() {
        for (remark, expected) in [
            ("# recorded 9, lost 0", Some((9, 0))),
            ("# recorded 60000000000, lost 7", Some((60_000_000_000, 7))),
            // Remarks that users may have written before this had a meaning.
            ("# recorded 2026-11-22 on db1", None),
            ("# recorded", None),
            ("#recorded 9, lost 0", None),
        ] {
            for text in [
                format!("{HEAD}9,0,512,W,-\n{remark}\n"),
                format!("{HEAD}{remark}\n9,0,512,W,-\n"),
            ] {
                let trace = read(text.as_bytes()).unwrap();
                let found = trace.recorded.map(|it| (it.duration_ns, it.lost));
                assert_eq!((found, trace.rows.len()), (expected, 1), "{text}");
            }
        }
    }

    /// Text after the head, and the error message.
    const WRONG: &[(&str, &str)] = &[
        (
            "# directory /a%4\n",
            "line 3: file name \"/a%4\": not empty, and % only as %XX",
        ),
        (
            "# recorded x, lost 0\n",
            "line 3: recorded \"x\" is not a whole number below 2^64",
        ),
        (
            "1,0,512,W,-\n# recorded 9, lost -1\n",
            "line 4: lost \"-1\" is not a whole number below 2^64",
        ),
        (
            "# sampled 1/x, granules of 16384 bytes\n",
            "line 3: sampled \"x\" is not a whole number below 2^64",
        ),
        (
            "# sampled 1/0, granules of 16384 bytes\n",
            "line 3: sampled 1/0 in granules of 16384 bytes: use 1/1 to 1/1024, and a power of two from 512",
        ),
        (
            "# sampled 1/4, granules of 16384 bytes\n# sampled 1/4, granules of 16384 bytes\n",
            "line 4: the sampled share is given twice; traces of several samples cannot be joined",
        ),
        (
            "# recorded 9, lost 0\n# recorded 9, lost 0\n",
            "line 4: the length of the recording is given twice; joined traces must have one length",
        ),
        (
            "9,0,512,W,-\n# recorded 8, lost 0\n",
            "line 4: t_ns 9 is after the end of the recording, which lasted 8 ns",
        ),
        (
            "# recorded 8, lost 0\n8,0,512,W,-\n9,0,512,W,-\n",
            "line 5: t_ns 9 is after the end of the recording, which lasted 8 ns",
        ),
        (
            "1,0,512\n",
            "line 3: 3 fields; a row has five: t_ns,lba,len,op,file",
        ),
        (
            "\n",
            "line 3: 1 fields; a row has five: t_ns,lba,len,op,file",
        ),
        (
            "1,0,512,W,-\nx,0,512,W,-\n",
            "line 4: t_ns \"x\" is not a whole number below 2^64",
        ),
        (
            "+1,0,512,W,-\n",
            "line 3: t_ns \"+1\" is not a whole number below 2^64",
        ),
        (
            "1,,512,W,-\n",
            "line 3: lba \"\" is not a whole number below 2^64",
        ),
        (
            "18446744073709551616,0,512,W,-\n",
            "line 3: t_ns \"18446744073709551616\" is not a whole number below 2^64",
        ),
        (
            "1,100,512,W,-\n",
            "line 3: lba 100 is not a multiple of 512 bytes",
        ),
        (
            "1,0,513,W,-\n",
            "line 3: len 513 is not a multiple of 512 bytes",
        ),
        (
            "1,0,0,W,-\n",
            "line 3: len 0: a request has at least one sector",
        ),
        (
            "1,18446744073709551104,1024,W,-\n",
            "line 3: lba 18446744073709551104 + len 1024 is beyond 2^64",
        ),
        (
            "1,0,1125899906843136,D,-\n",
            "line 3: len 1125899906843136 is more than 1125899906842624 bytes (1 PiB), the limit for a request",
        ),
        (
            "1,0,512,R,-\n",
            "line 3: op \"R\": use W (write), D (discard) or P (present at the beginning)",
        ),
        (
            "7,0,512,W,-\n# x\n6,0,512,W,-\n",
            "line 5: t_ns 6 is before 7 of the row before; sort the rows by time",
        ),
        (
            "1,0,512,W,0\n",
            "line 3: file 0 has no name; its first row must say 0=NAME",
        ),
        (
            "1,0,512,W,a\n",
            "line 3: file \"a\" is not a whole number below 2^64",
        ),
        (
            "1,0,512,W,1=a\n",
            "line 3: file 1=... gets a name, but the next new file is number 0",
        ),
        (
            "1,0,512,W,0=a\n2,0,512,W,0=a\n",
            "line 4: file 0=... gets a name, but the next new file is number 1",
        ),
        (
            "1,0,512,W,0=\n",
            "line 3: file name \"\": not empty, and % only as %XX",
        ),
        (
            "1,0,512,W,0=a%4\n",
            "line 3: file name \"a%4\": not empty, and % only as %XX",
        ),
        (
            "1,0,512,W,-\n2,0,512,W,-",
            "line 4: the file ends within a line; the recording was interrupted, or the disk was full",
        ),
    ];

    #[test]
    fn an_invalid_line_has_its_number_and_error() {
        let long = format!("1,0,512,W,0={}\n", "x".repeat(17_000));
        let long = (long.as_str(), "line 3: longer than 16384 bytes");
        for (text, message) in WRONG.iter().copied().chain([long]) {
            let found = read(format!("{HEAD}{text}").as_bytes()).unwrap_err();
            assert_eq!(found.to_string(), message);
        }
    }

    #[test]
    fn the_message_has_the_cause_once() {
        let error = ReadError::from(io::Error::from(io::ErrorKind::IsADirectory));
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(error.to_string(), "cannot be read: is a directory");
    }

    #[test]
    fn other_files_are_refused_by_their_first_lines() {
        for (bytes, message) in [
            (
                &b""[..],
                "line 1: \"\" is not \"# saiga block trace 1\", with",
            ),
            (
                b"t,lba\n",
                "line 1: \"t,lba\" is not \"# saiga block trace 1\", with",
            ),
            (
                b"# saiga block trace 2\n",
                "line 1: \"# saiga block trace 2\" is not",
            ),
            (b"\xff\xfe\x00\x01", "line 1: "),
            (
                b"# saiga block trace 1",
                "line 1: the file ends within a line",
            ),
            (
                b"# saiga block trace 1\n",
                "line 2: the file ends within a line",
            ),
            (
                b"# saiga block trace 1\na,b\n",
                "line 2: the second line of a trace is",
            ),
            (
                b"# saiga block trace 1\nt_ns,lba,len,op,file\n1,0,512,W,0=\xff\n",
                "line 3: not UTF-8",
            ),
        ] {
            let found = read(bytes).unwrap_err().to_string();
            assert!(found.starts_with(message), "{found}");
        }
    }
}
