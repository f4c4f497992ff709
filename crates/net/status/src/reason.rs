//! Why a connection, or a whole process, is on kernel TCP.
//!
//! One list for the library, `saiga status` and the report. Numbers are part of
//! the page's layout: append, never renumber, never reuse one that was retired.

macro_rules! reasons {
    ($($(#[$doc:meta])* $number:literal $variant:ident $name:literal $sentence:literal;)*) => {
        /// Why something is on kernel TCP; the numbers are part of the page's layout.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Reason {
            $(#[doc = $sentence] $variant = $number,)*
        }

        impl Reason {
            /// Every reason, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The short word for tables, JSON and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One clause for a person, without a full stop.
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
    4 PeerUnknown "peer-unknown" "peer is on this host, and its end of the connection is not (address translation)";
    5 OfferTimedOut "offer-timeout" "offer timed out";
    6 PeerDeclined "peer-declined" "peer declined";
    7 PeerAsked "peer-asked" "peer asked to go back to TCP";
    8 VersionMismatch "version" "peer runs another version of Saiga";
    9 DifferentUser "different-user" "peer belongs to a different user";
    10 IdentityUnproven "unproven" "the process behind the control name did not prove that it owns the connection";
    11 NotTcp "not-tcp" "not a TCP socket";
    12 ForkShared "fork" "another process used the connection, which it has by fork";
    13 PassedOn "scm-rights" "descriptor was passed to another process (SCM_RIGHTS)";
    14 Exec "exec" "process replaced itself by exec with the descriptor open";
    15 MovedOutside "moved-outside" "bytes moved outside the library";
    16 OutOfBand "out-of-band" "out of band data";
    17 Stdio "stdio" "stdio on the socket (fdopen)";
    18 IoUring "io-uring" "socket is used through io_uring, or the process has a ring whose requests Saiga cannot see (Node.js: set UV_USE_IO_URING=0)";
    19 EpollUnknown "epoll-unknown" "epoll set unknown to the library";
    21 SocketOption "socket-option" "a socket option that a channel cannot honour is set";
    22 UnsupportedCall "unsupported-call" "a call that a channel cannot serve was made";
    23 Sandboxed "sandbox" "process sandboxed itself (seccomp)";
    24 DeniedBySettings "settings" "denied by settings";
    25 DeniedBySystem "denied" "a security module or the system denied it";
    26 OutOfDescriptors "no-descriptors" "out of descriptors";
    27 OutOfMemory "no-memory" "out of memory";
    28 CorruptMemory "corrupt" "corrupt shared memory";
    29 HandshakeFailed "handshake" "hand-shake was cut short or made no sense";
    30 HiddenDescriptorLost "descriptor-lost" "application closed or replaced one of the library's descriptors";
    31 BadSettings "bad-settings" "settings could not be read";
    32 KillSwitch "kill-switch" "switched off (enabled = false)";
    33 MissingSymbol "missing-symbol" "the C library lacks a function that Saiga needs";
    34 HalfClosed "half-closed" "connection is closing";
    35 ProgramNotBound "procname" "program is not the one named by GAZELLE_BIND_PROCNAME";
    36 PeerGone "peer-gone" "peer's process ended";
    37 Internal "internal" "an invariant of the library did not hold; please report it";
    38 Namespace "namespace" "process went into another network, user or PID namespace";
    39 FileSizeLimit "file-size-limit" "the limit on file sizes (RLIMIT_FSIZE, ulimit -f) is below the size of a segment";
    40 PeerExcess "peer-excess" "peer asked for more segments or wake-ups than its connections need";
    41 PeerStalled "peer-stalled" "peer took nothing of what had to be sent before the connection ended";
    42 WaitsUnseen "waits-unseen" "receives do not wait, and Saiga has seen no other wait (the program has not waited yet, or waits by system calls of its own)";
}

impl Reason {
    /// One more than the largest number in use.
    pub const COUNT: usize = match Self::ALL {
        [.., last] => *last as usize + 1,
        [] => 0,
    };

    /// The reason with this number; `None` for a number that we do not know.
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
    fn numbers_ascend_but_for_retired_ones_and_names_are_unique() {
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
