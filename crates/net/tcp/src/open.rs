//! The synchronised states, from ESTABLISHED to the acknowledgement of the last FIN.
//!
//! Spec: RFC 9293 §3.10.7.4. A synchronised connection is two halves, [`Sender`] and [`Receiver`];
//! the six states of the RFC are the products of "our FIN is not sent, sent, acknowledged" and
//! "their FIN has come or not". This module joins the halves: the order of the checks, and the
//! segments that carry news of both.

mod probe;
mod segment;

use saiga_wire::SeqNum;

use crate::connection::{Outcome, Place, Reply, StateName};
use crate::context::{Arrival, Context};
use crate::event::{CloseReason, Events};
use crate::handshake::{Agreed, Start, timestamp};
use crate::info::Info;
use crate::receiver::{Receiver, ReceiverStart, Verdict};
use crate::sender::{Ack, Echo, Sender, SenderStart};
use crate::time::{Micros, OptionalInstant};
use crate::time_wait::TimeWait;
use probe::Idle;

/// The state.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    agreed: Agreed,
    timestamp_offset: u32,
    sender: Sender,
    receiver: Receiver,
    idle: Idle,
    /// Whether the peer's FIN came before this side's was sent: then the last acknowledgement ends
    /// the connection without TIME-WAIT.
    is_passive_close: bool,
    /// Since when FIN-WAIT-2 waits for the peer, once the application has gone.
    fin_wait_since: OptionalInstant,
    /// Whether the application does not read any more.
    is_abandoned: bool,
    /// What ICMP has reported since the last acknowledgement.
    soft_error: Option<CloseReason>,
}

/// What the handshake hands over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Born {
    pub(crate) start: Start,
    pub(crate) agreed: Agreed,
    /// The peer's initial sequence number.
    pub(crate) irs: SeqNum,
    /// The peer's window in bytes.
    pub(crate) window: u32,
    pub(crate) ts_recent: u32,
    /// The round-trip time of the SYN, if it was sent once.
    pub(crate) rtt: Option<Micros>,
    /// Repetitions of the SYN, or of the SYN with its acknowledgement.
    pub(crate) syn_retries: u8,
}

impl Open {
    pub(crate) fn new(born: &Born, context: &Context<'_>) -> Self {
        let Born {
            start,
            agreed,
            irs,
            window,
            ts_recent,
            rtt,
            syn_retries,
        } = *born;
        let now = context.now;
        Self {
            agreed,
            timestamp_offset: start.timestamp_offset,
            sender: Sender::new(&SenderStart {
                una: start.iss + 1,
                mss: agreed.mss,
                has_sack: agreed.has_sack,
                algorithm: context.config.congestion,
                window,
                wl1: irs,
                rtt,
                syn_retries,
                now,
            }),
            receiver: Receiver::new(&ReceiverStart {
                nxt: irs + 1,
                buffer: start.buffer,
                shift: agreed.recv_shift,
                peer_mss: agreed.mss,
                ts_recent: agreed.has_timestamps.then_some(ts_recent),
                has_ecn: agreed.has_ecn,
                now,
            }),
            idle: Idle::new(now),
            is_passive_close: false,
            fin_wait_since: OptionalInstant::NONE,
            is_abandoned: false,
            soft_error: None,
        }
    }

    /// The name of the state in RFC 9293. A close makes FIN-WAIT-1 at once, but LAST-ACK only when
    /// the FIN is sent (§3.10.4).
    pub(crate) fn name(&self) -> StateName {
        let sender = &self.sender;
        match (sender.is_closed(), self.receiver.is_finished()) {
            (false, false) => StateName::Established,
            (true, false) if sender.is_fin_acked() => StateName::FinWait2,
            (true, false) => StateName::FinWait1,
            (true, true) if !self.is_passive_close => StateName::Closing,
            (true, true) if sender.is_fin_sent() => StateName::LastAck,
            (_, true) => StateName::CloseWait,
        }
    }

    /// Whether both sides have sent their FINs.
    pub(crate) fn is_closing(&self) -> bool {
        self.sender.is_fin_sent() && self.receiver.is_finished()
    }

    /// Handles a segment in the order of RFC 9293 §3.10.7.4: window, RST, SYN, ACK, URG, data, FIN.
    pub(crate) fn on_segment(
        &mut self,
        arrival: &Arrival<'_>,
        place: &mut impl Place,
        context: &mut Context<'_>,
    ) -> Outcome {
        match self.receiver.judge(arrival, self.agreed.has_sack, context) {
            Verdict::Acceptable => {}
            // Two sides that disagree would answer each other for ever without a limit.
            Verdict::Answer => return Outcome::Answer(Reply::Challenge),
            Verdict::Drop => return Outcome::Stay(Events::NONE),
            Verdict::Challenge => return Outcome::Answer(Reply::Challenge),
            Verdict::Reset => return Outcome::Close(CloseReason::Reset),
        }
        let Some(number) = arrival.header.ack else {
            return Outcome::Stay(Events::NONE);
        };
        if self.is_impossible(number) {
            return Outcome::Answer(Reply::Challenge);
        }
        self.idle.on_segment(context.now);
        if self.is_abandoned && arrival.length > 0 {
            // RFC 9293 §3.6.1: data that nobody will read is answered with a reset.
            return Outcome::Reset(CloseReason::Reset);
        }
        // As in Linux, the peer is there again.
        self.soft_error = None;
        self.receiver.note_timestamp(arrival, context);
        let mut events = self.on_ack(number, arrival, context);
        events.is_urgent = self.receiver.on_urgent(arrival);
        self.on_data(arrival, place, &mut events, context);
        self.next_state(events, context)
    }

    /// Whether an acknowledgement is of data that was never sent, or older than the peer can be
    /// (RFC 5961 §5.2).
    fn is_impossible(&self, number: SeqNum) -> bool {
        let oldest = self.sender.una() - self.sender.largest_window();
        number.after(self.sender.nxt()) || number.before(oldest)
    }

    fn on_ack(
        &mut self,
        number: SeqNum,
        arrival: &Arrival<'_>,
        context: &mut Context<'_>,
    ) -> Events {
        let header = arrival.header;
        let now = timestamp(self.timestamp_offset, context.now);
        let echoed = header.options.timestamps.filter(|one| one.echo != 0);
        let echo = echoed
            .filter(|_| self.agreed.has_timestamps)
            .map(|one| Echo {
                value: one.echo,
                now,
                offset: self.timestamp_offset,
            });
        let ack = Ack {
            number,
            seq: header.seq,
            window: u32::from(header.window) << self.agreed.send_shift,
            sack: &header.options.sack,
            echo,
            has_data: arrival.sequence_length() > 0,
            is_congested: self.agreed.has_ecn && header.flags.contains(saiga_wire::tcp::Flags::ECE),
        };
        let progress = self.sender.on_ack(&ack, context);
        if progress.is_progress {
            self.idle.on_progress();
        }
        Events {
            acked: progress.acked,
            ..Events::NONE
        }
    }

    fn on_data(
        &mut self,
        arrival: &Arrival<'_>,
        place: &mut impl Place,
        events: &mut Events,
        context: &mut Context<'_>,
    ) {
        let seq = arrival.header.seq;
        let unread = self.receiver.unread();
        let nxt = self.receiver.data_nxt();
        let end = seq + arrival.length;
        let room = if arrival.length > 0 && end.after(nxt) {
            place.room(unread + (end - nxt))
        } else {
            u32::MAX
        };
        let added = self.receiver.on_data(
            arrival,
            room,
            |block| {
                // Bytes from the front of the receive buffer.
                let at = unread + (block.left - nxt);
                place.place(block.left - seq, at, block.right - block.left);
            },
            context,
        );
        events.readable = added.readable;
        events.is_finished = added.is_finished;
        if added.is_finished && !self.sender.is_closed() {
            self.is_passive_close = true;
        }
    }

    /// Leaves the state when both FINs are acknowledged.
    fn next_state(&mut self, events: Events, context: &Context<'_>) -> Outcome {
        let is_acked = self.sender.is_fin_acked();
        match (is_acked, self.receiver.is_finished()) {
            (true, true) if self.is_passive_close => Outcome::Finish(events),
            (true, true) => Outcome::Wait(self.time_wait(context), events),
            (true, false) => {
                if self.is_abandoned {
                    self.fin_wait_since.set_first(context.now);
                }
                Outcome::Stay(events)
            }
            (false, _) => Outcome::Stay(events),
        }
    }

    fn time_wait(&mut self, context: &Context<'_>) -> TimeWait {
        let timestamps = self.receiver.ts_recent();
        let is_ack_due = self.is_ack_due();
        TimeWait {
            snd_nxt: self.sender.nxt(),
            rcv_nxt: self.receiver.nxt(),
            window: self.receiver.announce(),
            timestamps: timestamps.map(|recent| (recent, self.timestamp_offset)),
            end: context.now + context.config.time_wait,
            is_ack_due,
        }
    }

    /// An acknowledgement is due at once.
    pub(crate) fn acknowledge_now(&mut self) {
        self.receiver.acknowledge_now();
    }

    /// The application has written bytes behind those that it wrote before.
    pub(crate) fn on_write(&mut self, bytes: u32, context: &Context<'_>) {
        self.sender.on_write(bytes);
        self.sender.arm_after_write(context);
    }

    /// As [`Self::on_write`]; the last byte is urgent.
    pub(crate) fn on_write_urgent(&mut self, bytes: u32, context: &Context<'_>) {
        self.sender.on_write_urgent(bytes);
        self.sender.arm_after_write(context);
    }

    /// The application has read bytes.
    pub(crate) fn on_read(&mut self, bytes: u32) {
        self.receiver.on_read(bytes);
    }

    /// The receive buffer has another size.
    pub(crate) fn resize(&mut self, buffer: u32) {
        self.receiver.resize(buffer);
    }

    /// The application will not write any more.
    pub(crate) fn on_shutdown(&mut self, context: &Context<'_>) {
        self.sender.on_close();
        self.sender.arm_after_write(context);
    }

    /// The application will neither write nor read any more. Returns whether the peer must be
    /// reset, because data that it sent was not read (RFC 2525 §2.17).
    pub(crate) fn on_close(&mut self, context: &Context<'_>) -> bool {
        if self.receiver.unread() > 0 {
            return true;
        }
        self.is_abandoned = true;
        self.sender.on_abandoned();
        self.on_shutdown(context);
        if self.sender.is_fin_acked() {
            self.fin_wait_since.set_first(context.now);
        }
        false
    }

    /// Retransmissions and probes since the peer was heard.
    pub(crate) fn unanswered(&self) -> u8 {
        self.sender.unanswered()
    }

    /// Whether the number is that of a segment that the peer has not acknowledged.
    pub(crate) fn has_in_flight(&self, seq: SeqNum) -> bool {
        let una = self.sender.una();
        seq.in_window(una, self.sender.nxt() - una)
    }

    /// A segment was too big for the path; `mss` bytes without options are not.
    pub(crate) fn on_too_big(&mut self, mss: u16, seq: SeqNum, context: &mut Context<'_>) {
        let taken = self.agreed.option_bytes();
        self.sender
            .on_too_big(mss.saturating_sub(taken), seq, context);
    }

    /// See [`crate::Connection::on_path_mtu`].
    pub(crate) fn on_path_mtu(&mut self, mss: u16, context: &mut Context<'_>) {
        let taken = self.agreed.option_bytes();
        self.sender.on_path_mtu(mss.saturating_sub(taken), context);
    }

    /// Notes an error that does not end the connection.
    pub(crate) fn on_soft_error(&mut self, reason: CloseReason) {
        self.soft_error = Some(reason);
    }

    /// The last such error.
    pub(crate) fn soft_error(&self) -> Option<CloseReason> {
        self.soft_error
    }

    /// The numbers of a reset: one that the peer accepts, and `RCV.NXT`.
    pub(crate) fn reset_numbers(&self) -> (SeqNum, SeqNum) {
        let seq = self.sender.acceptable_seq(1 << self.agreed.send_shift);
        (seq, self.receiver.nxt())
    }

    /// Bytes that the application has not read up to the end of urgent data.
    pub(crate) fn urgent_ahead(&self) -> Option<u32> {
        self.receiver.urgent_ahead()
    }

    /// See [`crate::Connection::info`].
    pub(crate) fn info(&self, context: &Context<'_>) -> Info {
        self.sender.info(self.receiver.window(), context)
    }

    fn is_ack_due(&self) -> bool {
        self.receiver.is_ack_due()
    }
}
