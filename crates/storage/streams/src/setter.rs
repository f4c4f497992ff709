//! How a hint is put on a file and read back.
//!
//! [`Setter`] is the seam: `F_SET_RW_HINT` today, an ioctl for the streams of one file when a kernel has it. A hint that
//! somebody else has set is theirs: it is overwritten only when a rule says so.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::hint::Hint;
use crate::sys;

/// Puts hints on files.
pub trait Setter: Send + Sync {
    /// What it uses, for people.
    fn name(&self) -> &'static str;

    /// The hint of an open file.
    ///
    /// # Errors
    /// The kernel's.
    fn read(&self, file: BorrowedFd<'_>) -> Result<Hint, Errno>;

    /// Puts a hint on an open file; it need not be open for writing.
    ///
    /// # Errors
    /// The kernel's.
    fn set(&self, file: BorrowedFd<'_>, hint: Hint) -> Result<(), Errno>;
}

/// `F_SET_RW_HINT` of fcntl(2): on the inode, in memory, until it is evicted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fcntl;

impl Setter for Fcntl {
    fn name(&self) -> &'static str {
        "F_SET_RW_HINT"
    }

    fn read(&self, file: BorrowedFd<'_>) -> Result<Hint, Errno> {
        // A value that fcntl(2) does not know was not set by it.
        Hint::from_raw(sys::rw_hint(file)?).ok_or(Errno::PROTO)
    }

    fn set(&self, file: BorrowedFd<'_>, hint: Hint) -> Result<(), Errno> {
        sys::set_rw_hint(file, hint.raw())
    }
}

/// What a rule wants for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The hint; [`Hint::NotSet`] wants nothing.
    pub hint: Hint,
    /// Overwrite whatever is there.
    pub force: bool,
    /// The hint that we put there ourselves, which is ours to change.
    pub ours: Option<Hint>,
}

/// What became of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file had the hint.
    Had,
    /// It has it now.
    Set,
    /// Somebody else has given it another one, which stays.
    Kept(Hint),
    /// Nothing was wanted.
    Left,
}

/// Why a hint is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The kernel refuses.
    #[error("{0}{advice}", advice = advice(*.0))]
    Refused(#[from] Errno),
    /// The kernel accepted it, and there is another one.
    #[error("the hint was accepted, but `{0}` is read back")]
    NotTaken(Hint),
}

fn advice(error: Errno) -> &'static str {
    match error {
        // fs/fcntl.c from 7.2 on.
        Errno::PERM => {
            "; from Linux 7.2 on that takes its owner or CAP_FOWNER, and the file must not be immutable"
        }
        _ => "",
    }
}

/// Puts the hint on an open file, if it may, and reads it back.
///
/// # Errors
/// What the kernel refused, or that the hint did not take.
pub fn apply(setter: &dyn Setter, file: BorrowedFd<'_>, wish: Wish) -> Result<Outcome, ApplyError> {
    let Wish { hint, force, ours } = wish;
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

    fn wish(hint: Hint) -> Wish {
        Wish {
            hint,
            force: false,
            ours: None,
        }
    }

    /// A kernel that accepts everything and keeps nothing, as 5.18 would if reading were broken too.
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
        assert_eq!(apply(&Fcntl, file, wish(Hint::Short)), Ok(Outcome::Set));
        assert_eq!(sys::rw_hint(file), Ok(2));
        assert_eq!(apply(&Fcntl, file, wish(Hint::Short)), Ok(Outcome::Had));
        assert_eq!(apply(&Fcntl, file, wish(Hint::NotSet)), Ok(Outcome::Left));
        let lost = apply(&Forgetful, file, wish(Hint::Long));
        assert_eq!(lost, Err(ApplyError::NotTaken(Hint::NotSet)));
    }

    #[test]
    fn somebody_elses_hint_stays() {
        let file = tempfile::tempfile().unwrap();
        let file = file.as_fd();
        sys::set_rw_hint(file, 5).unwrap();
        let kept = Outcome::Kept(Hint::Extreme);
        assert_eq!(apply(&Fcntl, file, wish(Hint::Short)), Ok(kept));
        let mine_was = |ours| Wish {
            ours: Some(ours),
            ..wish(Hint::Short)
        };
        assert_eq!(apply(&Fcntl, file, mine_was(Hint::Long)), Ok(kept));
        let forced = Wish {
            force: true,
            ..wish(Hint::Medium)
        };
        assert_eq!(apply(&Fcntl, file, forced), Ok(Outcome::Set));
        assert_eq!(
            apply(&Fcntl, file, mine_was(Hint::Medium)),
            Ok(Outcome::Set)
        );
    }

    /// What astream passes: four bytes, and whatever lies behind them on its stack.
    #[test]
    fn the_kernel_reads_all_64_bits() {
        let file = tempfile::tempfile().unwrap();
        let garbage = (1 << 32) + Hint::Short.raw();
        assert_eq!(sys::set_rw_hint(file.as_fd(), garbage), Err(Errno::INVAL));
        assert_eq!(sys::rw_hint(file.as_fd()), Ok(0));
    }
}
