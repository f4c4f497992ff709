//! Known differences from TCP: a constant is true while the library has the difference.

/// `[Control(0,B,Add,Level), Talk(A,5), Control(0,B,Mod,OneShot), Send(A,1), StayOnTcp(A),
/// Wait(0,1), Talk(A,1), ShutdownWrite(A), ShutdownWrite(B), Wait(0,1)]`: a spent one-shot
/// registration returns to the kernel with no events, for which the kernel still reports EPOLLHUP.
pub(crate) const SPENT_ONE_SHOT_HEARS_HUP: bool = true;

/// `[Control(0,A,Add,OneShot), Send(B,1), Wait(0,1), Talk(A,6), Send(B,1), Wait(0,1)]`: a one-shot
/// registration that fired in the kernel is armed again by the upgrade.
pub(crate) const SPENT_ONE_SHOT_FIRES_AFTER_UPGRADE: bool = false;

/// `[Recv(B,1), Talk(A,6), Send(A,1), Readable(B)]` (A offers) and `[Talk(A,6), StayOnTcp(A),
/// Send(A,1), Readable(B)]` (B offers): FIONREAD does not act on a switch that only a receive has
/// to notice, and returns 0 beside unread bytes.
pub(crate) const FIONREAD_MISSES_A_SWITCH: bool = false;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), StayOnTcp(B), Recv(B,1)]` (B offers): A cannot send
/// again the bytes that B has left in the ring, so the connection is reset.
pub(crate) const RECALL_AFTER_A_SHUTDOWN_IS_RESET: bool = true;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), Send(A,1)]` (B offers): EAGAIN (a blocking send waits)
/// until the peer has noticed the switch to the ring, where TCP has EPIPE at once.
pub(crate) const SEND_AFTER_SHUTDOWN_WAITS_FOR_THE_PEER: bool = false;
