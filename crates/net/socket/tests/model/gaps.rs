//! Where the library is known to differ from TCP; set one to false once it does not.

/// `[Talk(A,3), Send(A,57), ShutdownWrite(A), ShutdownWrite(B), Peek(A,1)]`: with both directions
/// shut the anchors leave sock_diag, so unread bytes look like those of a dead peer, and the
/// sender's next receive is ECONNRESET where TCP has the end of the stream.
pub(crate) const BOTH_SHUT_BESIDE_UNREAD_IS_RESET: bool = true;

/// `[Control(0,B,Add,Level), Talk(A,5), Control(0,B,Mod,OneShot), Send(A,1), StayOnTcp(A), Wait(0,1),
/// Talk(A,1), ShutdownWrite(A), ShutdownWrite(B), Wait(0,1)]`: a spent one-shot registration that goes
/// back to the kernel does so with no events, of which the kernel still reports EPOLLHUP.
pub(crate) const SPENT_ONE_SHOT_HEARS_HUP: bool = true;

/// `[Control(0,A,Add,OneShot), Send(B,1), Wait(0,1), Talk(A,6), Send(B,1), Wait(0,1)]`: a one-shot
/// registration that fired in the kernel is armed again by the upgrade.
pub(crate) const SPENT_ONE_SHOT_FIRES_AFTER_UPGRADE: bool = true;

/// `[Recv(B,1), Talk(A,6), Send(A,1), Readable(B)]` (A offers) and `[Talk(A,6), StayOnTcp(A), Send(A,1),
/// Readable(B)]` (B offers): FIONREAD takes no part in a switch that only a receive has to notice, and
/// says 0 beside unread bytes.
pub(crate) const FIONREAD_MISSES_A_SWITCH: bool = true;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), StayOnTcp(B), Recv(B,1)]` (B offers): A cannot send again
/// what B has left in the ring, and B reads the end of the stream as if nothing were missing.
pub(crate) const BYTES_BEFORE_A_SHUTDOWN_ARE_LOST_BY_A_RECALL: bool = true;

/// `[Talk(A,5), Send(A,1), ShutdownWrite(A), Send(A,1)]` (B offers): EAGAIN (a blocking send waits) until
/// the peer has noticed the switch to the ring, where TCP has EPIPE at once.
pub(crate) const SEND_AFTER_SHUTDOWN_WAITS_FOR_THE_PEER: bool = true;
