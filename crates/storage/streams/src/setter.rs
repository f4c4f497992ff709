//! Sets the hint of a file and reads it back.
//!
//! [`Setter`] abstracts the system call: `F_SET_RW_HINT` today, an ioctl for the streams of a file
//! once a kernel has it. A hint that another program has set is overwritten only if a rule forces
//! it.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::hint::Hint;
use crate::sys;

/// Sets and reads the hints of open files.
pub trait Setter: Send + Sync {
    /// Returns the name of its mechanism, for messages.
    fn name(&self) -> &'static str;

    /// Returns the hint of an open file.
    ///
    /// # Errors
    /// The error of the system call.
    fn read(&self, file: BorrowedFd<'_>) -> Result<Hint, Errno>;

    /// Sets the hint of an open file, which need not be open for writing.
    ///
    /// # Errors
    /// The error of the system call.
    fn set(&self, file: BorrowedFd<'_>, hint: Hint) -> Result<(), Errno>;
}

/// `F_SET_RW_HINT` of fcntl(2): the hint of the inode in memory, lost when the inode is evicted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fcntl;

impl Setter for Fcntl {
    fn name(&self) -> &'static str {
        "F_SET_RW_HINT"
    }

    fn read(&self, file: BorrowedFd<'_>) -> Result<Hint, Errno> {
        // PROTO: a value that F_SET_RW_HINT does not accept.
        Hint::from_raw(sys::rw_hint(file)?).ok_or(Errno::PROTO)
    }

    fn set(&self, file: BorrowedFd<'_>, hint: Hint) -> Result<(), Errno> {
        sys::set_rw_hint(file, hint.raw())
    }
}

/// A request to set a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// [`Hint::NotSet`] leaves the file as it is.
    pub hint: Hint,
    /// Overwrite any hint.
    pub force: bool,
    /// The last hint that the labeller has set on the file, which it may change.
    pub ours: Option<Hint>,
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file had the hint already.
    Had,
    /// The hint was set.
    Set,
    /// The file has this hint of another program, which stays.
    Kept(Hint),
    /// The request had no hint.
    Left,
}

/// An error of setting a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{0}{advice}", advice = advice(*.0))]
    Refused(#[from] Errno),
    /// The kernel accepted the hint, but returns this one.
    #[error("the hint was accepted, but `{0}` is read back")]
    NotTaken(Hint),
}

fn advice(error: Errno) -> &'static str {
    match error {
        // fs/fcntl.c from 7.2 on.
        Errno::PERM => {
            "; from Linux 7.2 on, only the owner of the file or a process with CAP_FOWNER can set a \
             hint, and the file must not be immutable"
        }
        _ => "",
    }
}

/// Sets the hint of an open file, unless another program has set one, and reads it back.
///
/// # Errors
/// The kernel refused the hint, or returns another one.
pub fn apply(
    setter: &dyn Setter,
    file: BorrowedFd<'_>,
    request: Request,
) -> Result<Outcome, ApplyError> {
    let Request { hint, force, ours } = request;
    if hint == Hint::NotSet {
        return Ok(Outcome::Left);
    }
    let before = setter.read(file)?;
    if before == hint {
        return Ok(Outcome::Had);
    }
    if before != Hint::NotSet && !force && ours != Some(before) {
        return Ok(Outcome::Kept(before));
    }
    setter.set(file, hint)?;
    match setter.read(file)? {
        after if after == hint => Ok(Outcome::Set),
        after => Err(ApplyError::NotTaken(after)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    fn request(hint: Hint) -> Request {
        Request {
            hint,
            force: false,
            ours: None,
        }
    }

    /// A kernel that accepts every hint and forgets it.
    struct Forgetful;

    impl Setter for Forgetful {
        fn name(&self) -> &'static str {
            "nothing"
        }

        fn read(&self, _: BorrowedFd<'_>) -> Result<Hint, Errno> {
            Ok(Hint::NotSet)
        }

        fn set(&self, _: BorrowedFd<'_>, _: Hint) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn a_hint_is_read_back() {
        let file = tempfile::tempfile().unwrap();
        let file = file.as_fd();
        assert_eq!(apply(&Fcntl, file, request(Hint::Short)), Ok(Outcome::Set));
        assert_eq!(sys::rw_hint(file), Ok(2));
        assert_eq!(apply(&Fcntl, file, request(Hint::Short)), Ok(Outcome::Had));
        assert_eq!(
            apply(&Fcntl, file, request(Hint::NotSet)),
            Ok(Outcome::Left)
        );
        let lost = apply(&Forgetful, file, request(Hint::Long));
        assert_eq!(lost, Err(ApplyError::NotTaken(Hint::NotSet)));
    }

    #[test]
    fn another_programs_hint_stays() {
        let file = tempfile::tempfile().unwrap();
        let file = file.as_fd();
        sys::set_rw_hint(file, 5).unwrap();
        let kept = Outcome::Kept(Hint::Extreme);
        assert_eq!(apply(&Fcntl, file, request(Hint::Short)), Ok(kept));
        let with_ours = |ours| Request {
            ours: Some(ours),
            ..request(Hint::Short)
        };
        assert_eq!(apply(&Fcntl, file, with_ours(Hint::Long)), Ok(kept));
        let forced = Request {
            force: true,
            ..request(Hint::Medium)
        };
        assert_eq!(apply(&Fcntl, file, forced), Ok(Outcome::Set));
        assert_eq!(
            apply(&Fcntl, file, with_ours(Hint::Medium)),
            Ok(Outcome::Set)
        );
    }

    /// astream passes four bytes; the kernel reads four more from its stack.
    #[test]
    fn the_kernel_reads_all_64_bits() {
        let file = tempfile::tempfile().unwrap();
        let garbage = (1 << 32) + Hint::Short.raw();
        assert_eq!(sys::set_rw_hint(file.as_fd(), garbage), Err(Errno::INVAL));
        assert_eq!(sys::rw_hint(file.as_fd()), Ok(0));
    }
}
