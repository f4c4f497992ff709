//! A file that goes from one process to another by a Unix socket.
//!
//! Source: `man 7 unix`, SCM_RIGHTS. The descriptor is in a message of one byte of its own: read(2)
//! would close it without a word.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends a file.
///
/// # Errors
/// Those of sendmsg(2).
pub(super) fn send(stream: &UnixStream, file: &File) -> io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = [IoSlice::new(&[0])];
    sendmsg(stream, &bytes, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives an empty regular file that is open for writing. Anything else, such as a pipe, could
/// make a writer wait.
///
/// # Errors
/// InvalidData if something else comes, and those of recvmsg(2): WouldBlock when the stream's time
/// is over.
pub(super) fn receive(stream: &UnixStream) -> io::Result<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    let file = files.pop().ok_or(io::ErrorKind::InvalidData)?;
    let status = fstat(&file)?;
    let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    let access = fcntl_getfl(&file)? & OFlags::RWMODE;
    if !is_regular || status.st_size != 0 || access == OFlags::RDONLY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::Duration;

    #[test]
    fn an_empty_file_arrives_and_other_things_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (near, far) = UnixStream::pair().unwrap();
        send(&near, &File::create(&path).unwrap()).unwrap();
        let mut file = receive(&far).unwrap();
        file.write_all(b"here").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"here");
        for other in ["/dev/null", path.to_str().unwrap()] {
            let other = std::fs::OpenOptions::new().write(true).open(other).unwrap();
            send(&near, &other).unwrap();
            assert!(receive(&far).is_err());
        }
        let empty = folder.path().join("y");
        File::create(&empty).unwrap();
        send(&near, &File::open(&empty).unwrap()).unwrap();
        assert!(receive(&far).is_err());
        (&near).write_all(b"x").unwrap();
        assert!(receive(&far).is_err(), "a byte without a file");
        far.set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        assert!(receive(&far).is_err(), "nothing comes");
    }
}
