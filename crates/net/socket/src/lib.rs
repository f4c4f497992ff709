//! POSIX semantics over anchors and channels.
