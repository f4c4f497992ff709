//! Reads a recorded trace from a file; detects gzip and zstd by the first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use saiga_ftl::trace::{self, Trace};

/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a zstd frame (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes 2 to 4 of a frame without data (RFC 8878, 3.1.2); its first byte is 50h to 5Fh.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Reads a trace; errors name the file.
pub(super) fn read(path: &Path) -> anyhow::Result<Trace> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let trace = match plain(BufReader::new(file)) {
        Ok(input) => trace::read(BufReader::new(input)),
        Err(error) => Err(error.into()),
    };
    trace.with_context(|| shown.to_string())
}

/// Decompresses if necessary.
fn plain(mut file: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    // The first read of a file returns at least four bytes, if the file has them.
    let first = file.fill_buf()?;
    if first.starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(file)));
    }
    let is_skippable =
        |first: &[u8]| matches!(first, [0x50..=0x5f, rest @ ..] if rest.starts_with(&SKIPPABLE));
    if first.starts_with(&ZSTD) || is_skippable(first) {
        return Ok(Box::new(Frames {
            file,
            frame: FrameDecoder::new(),
        }));
    }
    Ok(Box::new(file))
}

/// Decompresses all frames of a zstd file: parallel compressors write several, with frames without
/// data between them.
struct Frames<R> {
    file: R,
    frame: FrameDecoder,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.frame.decode_blocks(&mut self.file, one);
                decoded.map_err(io::Error::other)?;
            } else if !self.next_frame()? {
                return Ok(0);
            }
        }
        self.frame.read(bytes)
    }
}

impl<R: BufRead> Frames<R> {
    /// Starts the next frame, unless the file has ended. Checks the checksum of the previous one.
    fn next_frame(&mut self) -> io::Result<bool> {
        let said = self.frame.get_checksum_from_data();
        if said.is_some() && said != self.frame.get_calculated_checksum() {
            let fault = "the checksum of a zstd frame does not match its data";
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
        }
        while !self.file.fill_buf()?.is_empty() {
            match self.frame.init(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    magic_number: _,
                })) => {
                    let mut skipped = (&mut self.file).take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const TEXT: &[u8] =
        b"# saiga block trace 1\nt_ns,lba,len,op,file\n0,0,512,W,0=a\n1,512,512,W,-\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    /// A frame without data (RFC 8878, 3.1.2).
    fn skippable(length: u8) -> Vec<u8> {
        let head = [0x50, 0x2a, 0x4d, 0x18, length, 0, 0, 0];
        let rest = std::iter::repeat_n(7, length.into());
        head.into_iter().chain(rest).collect()
    }

    fn read_bytes(bytes: &[u8]) -> anyhow::Result<Trace> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn a_compressed_trace_reads_like_a_plain_one() {
        let plain = read_bytes(TEXT).unwrap();
        assert_eq!(plain.files, ["a"]);
        let (first, rest) = TEXT.split_at(30);
        for compressed in [
            gzip(TEXT),
            [gzip(first), gzip(rest)].concat(),
            zstd(TEXT),
            [zstd(first), skippable(9), zstd(rest), skippable(0)].concat(),
            [skippable(4), zstd(TEXT)].concat(),
        ] {
            assert_eq!(read_bytes(&compressed).unwrap(), plain);
        }
    }

    #[test]
    fn truncated_and_damaged_files_are_refused() {
        for whole in [gzip(TEXT), zstd(TEXT)] {
            let cut = &whole[..whole.len() - 3];
            let error = format!("{:#}", read_bytes(cut).unwrap_err());
            assert!(error.contains("cannot be read: "), "{error}");
        }
        let mut damaged = zstd(TEXT);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        let error = format!("{:#}", read_bytes(&damaged).unwrap_err());
        assert!(error.contains("checksum of a zstd frame"), "{error}");
    }
}
