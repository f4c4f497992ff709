//! What the application asks for before the handshake is complete.
//!
//! Spec: RFC 9293 §3.10.2 and §3.10.4: data is queued, and a FIN follows it.

use crate::context::Context;
use crate::open::Open;

/// Calls that wait for the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Early {
    /// Bytes.
    written: u32,
    /// How many of them end with the last urgent one.
    urgent: u32,
    /// Whether a FIN follows, and whether the application has gone.
    is_shut: bool,
    is_closed: bool,
}

impl Early {
    pub(crate) fn on_write(&mut self, bytes: u32) {
        self.written += bytes;
    }

    /// As [`Self::on_write`]; the last byte is urgent.
    pub(crate) fn on_write_urgent(&mut self, bytes: u32) {
        self.written += bytes;
        self.urgent = self.written;
    }

    pub(crate) fn on_shutdown(&mut self) {
        self.is_shut = true;
    }

    pub(crate) fn on_close(&mut self) {
        self.is_closed = true;
    }

    /// The handshake is complete.
    pub(crate) fn apply(&self, open: &mut Open, context: &Context<'_>) {
        let Self {
            written,
            urgent,
            is_shut,
            is_closed,
        } = *self;
        if urgent > 0 {
            open.on_write_urgent(urgent, context);
        }
        if written > urgent {
            open.on_write(written - urgent, context);
        }
        if is_shut {
            open.on_shutdown(context);
        }
        if is_closed {
            // Nothing can be unread yet.
            open.on_close(context);
        }
    }
}
