//! A connection that begins with the acknowledgement of a SYN cookie.

use super::{Connection, Outcome, Phase, Place};
use crate::context::{Arrival, Context};
use crate::cookie::CookieSecret;
use crate::event::Events;
use crate::handshake::{Agreed, Start};
use crate::open::Born;

impl Connection {
    /// Ends a handshake that [`CookieSecret::syn_ack`] answered without state; `None` if the
    /// cookie in the acknowledgement is not valid. Such a segment is answered with a reset, as for
    /// any connection that does not exist.
    ///
    /// `flow` and `start` are those of the answer to the SYN. `place` gets the payload of the
    /// segment.
    #[must_use]
    pub fn from_cookie(
        (secret, flow): (&CookieSecret, &[u8]),
        start: Start,
        arrival: &Arrival<'_>,
        place: &mut impl Place,
        context: &mut Context<'_>,
    ) -> Option<(Self, Events)> {
        let header = arrival.header;
        let Some(baked) = secret.open(flow, header, context.now) else {
            context.counters.sync_cookies_failed += 1;
            return None;
        };
        context.counters.sync_cookies_recv += 1;
        context.counters.passive_opens += 1;
        context.counters.in_segs += 1;
        let start = Start {
            iss: baked.iss,
            ..start
        };
        let agreed = Agreed::of(context.config, &start, &baked.syn, false);
        let born = Born {
            start,
            agreed,
            irs: baked.irs,
            window: u32::from(header.window) << agreed.send_shift,
            ts_recent: header.options.timestamps.map_or(0, |one| one.value),
            // The time of the answer was not kept, and its timestamp is rounded.
            rtt: None,
            syn_retries: 0,
        };
        let mut connection = Self::with(Phase::CLOSED);
        let _established = connection.apply(Outcome::Continue(born), context);
        let events = connection.on_segment_again(arrival, place, context);
        Some((
            connection,
            Events {
                is_established: true,
                ..events
            },
        ))
    }
}
