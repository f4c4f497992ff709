//! Where the library is, or was, known to differ from TCP: false once it does not.

/// `[Control(0,B,Add,Level), Talk(A,5), Control(0,B,Mod,OneShot), Send(A,1), StayOnTcp(A), Wait(0,1),
/// Talk(A,1), ShutdownWrite(A), ShutdownWrite(B), Wait(0,1)]`: a spent one-shot registration that goes
/// back to the kernel does so with no events, of which the kernel still reports EPOLLHUP.
pub(crate) const SPENT_ONE_SHOT_HEARS_HUP: bool = true;

/// `[Control(0,A,Add,OneShot), Send(B,1), Wait(0,1), Talk(A,6), Send(B,1), Wait(0,1)]`: a one-shot
/// registration that fired in the kernel is armed again by the upgrade.
pub(crate) const SPENT_ONE_SHOT_FIRES_AFTER_UPGRADE: bool = false;

/// `[Recv(B,1), Talk(A,6), Send(A,1), Readable(B)]` (A offers) and `[Talk(A,6), StayOnTcp(A), Send(A,1),
/// Readable(B)]` (B offers): FIONREAD takes no part in a switch that only a receive has to notice, and
/// says 0 beside unread bytes.
pub(crate) const FIONREAD_MISSES_A_SWITCH: bool = false;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), StayOnTcp(B), Recv(B,1)]` (B offers): A cannot send again
/// what B has left in the ring, so the connection is reset.
pub(crate) const RECALL_AFTER_A_SHUTDOWN_IS_RESET: bool = true;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), Send(A,1)]` (B offers): EAGAIN (a blocking send waits) until
/// the peer has noticed the switch to the ring, where TCP has EPIPE at once.
pub(crate) const SEND_AFTER_SHUTDOWN_WAITS_FOR_THE_PEER: bool = false;
