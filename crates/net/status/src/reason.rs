//! The reasons for which a connection, or a whole process, is on kernel TCP.
//!
//! The library, `saiga status` and the report share this list. The numbers are part of the page's
//! layout: append new reasons, and never renumber reasons or reuse a retired number.

macro_rules! reasons {
    ($($(#[$doc:meta])* $number:literal $variant:ident $name:literal $sentence:literal;)*) => {
        /// The reason for which a connection or process is on kernel TCP; the numbers are part of
        /// the page's layout.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Reason {
            $(#[doc = $sentence] $variant = $number,)*
        }

        impl Reason {
            /// Every reason, sorted by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The short name in tables and JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// An explanation for users: one clause, without a full stop.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }
        }
    };
}

reasons! {
    0 None "none" "no reason given";
    1 NotEnoughMessages "evidence" "not enough messages yet";
    2 PeerNotSaiga "peer-kernel" "peer is not a Saiga process, or has exchanged too few messages yet";
    3 PeerRemote "peer-remote" "peer is remote";
    4 PeerUnknown "peer-unknown" "peer is on this host, but its end of the connection was not found (address translation)";
    5 OfferTimedOut "offer-timeout" "offer timed out";
    6 PeerDeclined "peer-declined" "peer declined";
    7 PeerAsked "peer-asked" "peer asked to go back to TCP";
    8 VersionMismatch "version" "peer runs another version of Saiga";
    9 DifferentUser "different-user" "peer belongs to a different user";
    10 IdentityUnproven "unproven" "the process behind the control name did not prove that it owns the connection";
    11 NotTcp "not-tcp" "not a TCP socket";
    12 ForkShared "fork" "another process inherited the connection by fork and used it";
    13 PassedOn "scm-rights" "descriptor was passed to another process (SCM_RIGHTS)";
    14 Exec "exec" "process replaced itself by exec with the descriptor open";
    15 MovedOutside "moved-outside" "bytes were moved without the library";
    16 OutOfBand "out-of-band" "out of band data";
    17 Stdio "stdio" "stdio on the socket (fdopen)";
    18 IoUring "io-uring" "socket is used through io_uring, or the process has a ring whose requests Saiga cannot see (Node.js: set UV_USE_IO_URING=0)";
    19 EpollUnknown "epoll-unknown" "epoll set unknown to the library";
    21 SocketOption "socket-option" "a socket option is set that a channel does not support";
    22 UnsupportedCall "unsupported-call" "the program made a call that a channel does not support";
    23 Sandboxed "sandbox" "process sandboxed itself (seccomp)";
    24 DeniedBySettings "settings" "denied by settings";
    25 DeniedBySystem "denied" "denied by a security module or by the system";
    26 OutOfDescriptors "no-descriptors" "out of descriptors";
    27 OutOfMemory "no-memory" "out of memory";
    28 CorruptMemory "corrupt" "corrupt shared memory";
    29 HandshakeFailed "handshake" "handshake was interrupted or invalid";
    30 HiddenDescriptorLost "descriptor-lost" "application closed or replaced one of the library's descriptors";
    31 BadSettings "bad-settings" "settings could not be read";
    32 KillSwitch "kill-switch" "switched off (enabled = false)";
    33 MissingSymbol "missing-symbol" "the C library lacks a function that Saiga needs";
    34 HalfClosed "half-closed" "connection is closing";
    35 ProgramNotBound "procname" "program is not the one named by GAZELLE_BIND_PROCNAME";
    36 PeerGone "peer-gone" "peer's process ended";
    37 Internal "internal" "internal error of the library; please report it";
    38 Namespace "namespace" "process entered another network, user or PID namespace";
    39 FileSizeLimit "file-size-limit" "the limit on file sizes (RLIMIT_FSIZE, ulimit -f) is below the size of a segment";
    40 PeerExcess "peer-excess" "peer asked for more segments or wake-ups than its connections need";
    41 PeerStalled "peer-stalled" "peer did not read the remaining bytes before the connection ended";
    42 WaitsUnseen "waits-unseen" "receives do not wait, and Saiga has seen no other wait (the program has not waited yet, or waits by direct system calls)";
    43 DeepBound "deep-bound" "an object that was loaded with RTLD_DEEPBIND (as PHP loads extensions) waits by libc's functions, which Saiga does not see";
}

impl Reason {
    /// The largest number in use, plus one.
    pub const COUNT: usize = match Self::ALL {
        [.., last] => *last as usize + 1,
        [] => 0,
    };

    /// Returns the reason with this number; `None` for an unknown number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| *reason as u32 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_consecutive_except_retired_ones_and_names_are_unique() {
        const RETIRED: [u32; 1] = [20];
        let mut names = HashSet::new();
        let numbers = (0..).filter(|number| !RETIRED.contains(number));
        for (number, reason) in numbers.zip(Reason::ALL) {
            assert_eq!(*reason as u32, number, "{reason:?}");
            assert_eq!(Reason::from_number(number), Some(*reason));
            assert!(names.insert(reason.name()), "{} twice", reason.name());
            assert!(!reason.sentence().ends_with('.'), "{reason:?}");
        }
        for unknown in [RETIRED[0], u32::MAX] {
            assert_eq!(Reason::from_number(unknown), None);
        }
    }
}
