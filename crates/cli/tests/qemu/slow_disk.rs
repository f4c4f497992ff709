//! A disk whose flushes take long: a server of network block devices (NBD, fixed newstyle) for
//! QEMU.
//!
//! The protocol is that of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>,
//! without options. A guest sees an NVMe drive with a volatile cache behind it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// As long as a disk with rotating plates takes.
const FLUSH: Duration = Duration::from_millis(20);

const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_GO: u32 = 7;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = (1 << 31) + 1;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
/// The server understands flushes.
const HAS_FLAGS_AND_FLUSH: u16 = 1 | 4;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH_CACHE: u16 = 3;

/// The socket of a disk; the thread that serves it ends with the test program.
pub(crate) struct SlowDisk {
    folder: TempDir,
}

impl SlowDisk {
    /// An empty disk of this many bytes, for one machine.
    pub(crate) fn new(bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let image = tempfile::tempfile_in(folder.path()).unwrap();
        image.set_len(bytes).unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            if let Err(error) = negotiate(&mut peer, bytes).and_then(|()| serve(&mut peer, &image))
            {
                eprintln!("slow disk: {error}");
            }
        });
        Self { folder }
    }

    /// The value of QEMU's option `-drive`.
    pub(crate) fn drive(&self, name: &str) -> String {
        let socket = self.folder.path().join("socket");
        let socket = socket.display();
        format!("file=nbd+unix:///?socket={socket},format=raw,if=none,id={name}")
    }
}

/// Answers options until the client asks for the export.
fn negotiate(peer: &mut UnixStream, bytes: u64) -> io::Result<()> {
    const FIXED_NEWSTYLE: u16 = 1;
    peer.write_all(b"NBDMAGIC")?;
    peer.write_all(&OPTION.to_be_bytes())?;
    peer.write_all(&FIXED_NEWSTYLE.to_be_bytes())?;
    let _flags: [u8; 4] = read(peer)?;
    loop {
        let _magic: [u8; 8] = read(peer)?;
        let option = u32::from_be_bytes(read(peer)?);
        let length = u32::from_be_bytes(read(peer)?);
        io::copy(&mut peer.take(u64::from(length)), &mut io::sink())?;
        if option == OPTION_GO {
            let mut export = vec![0, 0];
            export.extend(bytes.to_be_bytes());
            export.extend(HAS_FLAGS_AND_FLUSH.to_be_bytes());
            answer(peer, option, REPLY_INFO, &export)?;
            return answer(peer, option, REPLY_ACK, &[]);
        }
        answer(peer, option, REPLY_UNSUPPORTED, &[])?;
    }
}

fn answer(peer: &mut UnixStream, option: u32, reply: u32, data: &[u8]) -> io::Result<()> {
    let mut message = OPTION_REPLY.to_be_bytes().to_vec();
    message.extend(option.to_be_bytes());
    message.extend(reply.to_be_bytes());
    message.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    message.extend(data);
    peer.write_all(&message)
}

/// Serves requests one after the other until the machine switches itself off.
fn serve(peer: &mut UnixStream, image: &File) -> io::Result<()> {
    loop {
        let magic = u32::from_be_bytes(read(peer)?);
        assert_eq!(magic, REQUEST, "not a request");
        let _flags: [u8; 2] = read(peer)?;
        let kind = u16::from_be_bytes(read(peer)?);
        let cookie: [u8; 8] = read(peer)?;
        let offset = u64::from_be_bytes(read(peer)?);
        let length = u32::from_be_bytes(read(peer)?) as usize;
        let mut message = SIMPLE_REPLY.to_be_bytes().to_vec();
        message.extend([0; 4]);
        message.extend(cookie);
        match kind {
            READ => {
                let start = message.len();
                message.resize(start + length, 0);
                image.read_exact_at(&mut message[start..], offset)?;
            }
            WRITE => {
                let mut data = vec![0; length];
                peer.read_exact(&mut data)?;
                image.write_all_at(&data, offset)?;
            }
            FLUSH_CACHE => flush(),
            DISCONNECT => return Ok(()),
            _ => return Err(io::Error::other(format!("unknown request {kind}"))),
        }
        peer.write_all(&message)?;
    }
}

#[expect(clippy::disallowed_methods, reason = "the disk is slow")]
fn flush() {
    thread::sleep(FLUSH);
}

fn read<const BYTES: usize>(peer: &mut UnixStream) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    peer.read_exact(&mut bytes)?;
    Ok(bytes)
}
