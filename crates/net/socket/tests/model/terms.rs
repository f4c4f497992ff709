//! Operands of the model's operations: sides, registrations, and epoll's event bits.

pub(crate) const IN: u32 = libc::EPOLLIN.cast_unsigned();
pub(crate) const OUT: u32 = libc::EPOLLOUT.cast_unsigned();
pub(crate) const RDHUP: u32 = libc::EPOLLRDHUP.cast_unsigned();
pub(crate) const ENDED: u32 = (libc::EPOLLHUP | libc::EPOLLERR).cast_unsigned();

/// One end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

impl Side {
    pub(crate) fn index(self) -> usize {
        match self {
            Side::A => 0,
            Side::B => 1,
        }
    }
    pub(crate) fn peer(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// The operation of `epoll_ctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ctl {
    Add,
    Mod,
    Del,
}

/// The events that a registration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Level,
    LevelOut,
    LevelHup,
    Edge,
    OneShot,
}

impl Mode {
    pub(crate) fn events(self) -> u32 {
        match self {
            Mode::Level => IN,
            Mode::LevelOut => IN | OUT,
            Mode::LevelHup => IN | RDHUP,
            Mode::Edge => IN | libc::EPOLLET.cast_unsigned(),
            Mode::OneShot => IN | libc::EPOLLONESHOT.cast_unsigned(),
        }
    }
}
