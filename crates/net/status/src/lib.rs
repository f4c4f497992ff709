//! The status page of an accelerated process.
