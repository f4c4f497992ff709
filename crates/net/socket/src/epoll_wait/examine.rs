//! What one registration has to report, asked of its channel under the lock of its set.
//!
//! Each registration is reported either by the kernel or by us. Where both do it, a one-shot event
//! comes twice, and a pool of threads serves a connection twice or one that it has freed.

use crate::chan::{Chan, tx};
use crate::epoll::{self, EDGE, EpollSet, Interest, ONESHOT};
use crate::readiness;
use crate::sock::Socket;
use core::sync::atomic::Ordering;
use saiga_channel::sys;

/// What a registration has to report, if anything. Puts it back into the ready list when it
/// may have more to say; otherwise the peer has been asked to tell. Caller holds the lock.
pub(super) fn examine(set: &'static EpollSet, interest: &'static Interest) -> Option<u32> {
    let silent = !interest.active.load(Ordering::Relaxed) || interest.spent.load(Ordering::Relaxed);
    let socket = interest.socket()?;
    if silent {
        return None;
    }
    if !socket.is_bound() || !interest.is_bound() {
        return examine_orphan(set, interest, socket);
    }
    let chan = Chan::of(socket)?;
    let asked = interest.events.load(Ordering::Relaxed);
    let wanted = epoll::wanted(interest) | libc::POLLERR | libc::POLLHUP;
    let fd = interest.anchor(socket);
    let edge = asked & EDGE != 0;
    if edge {
        epoll::arm(interest, &chan); // Before looking: a later byte is a new edge.
    }
    let mut found = readiness::events(fd, socket, &chan) & wanted;
    if found == 0 && !edge {
        epoll::arm(interest, &chan);
        found = readiness::events(fd, socket, &chan) & wanted;
    }
    let lacks_room = wanted & !found & libc::POLLOUT != 0;
    if lacks_room && chan.own().tx_mode.load(Ordering::Relaxed) != tx::RING {
        epoll::watch_for_room(set, interest, fd);
    }
    if found != 0 {
        set.peer_cpu.store(chan.peer_cpu(), Ordering::Relaxed);
    }
    report(set, interest, found)
}

/// The same for a connection on TCP, or one that is being bound. The kernel reports for its
/// registrations, save for those that could not be given back to it: there it tells us of changes.
fn examine_orphan(
    set: &'static EpollSet,
    interest: &'static Interest,
    socket: &'static Socket,
) -> Option<u32> {
    if !interest.is_orphan() {
        return None;
    }
    let wanted = epoll::wanted(interest) | libc::POLLERR | libc::POLLHUP;
    let found = sys::poll_now(interest.anchor(socket), wanted) & wanted;
    report(set, interest, found)
}

/// Notes that events are about to be reported, if there are any.
fn report(set: &'static EpollSet, interest: &'static Interest, found: i16) -> Option<u32> {
    if found == 0 {
        return None;
    }
    let asked = interest.events.load(Ordering::Relaxed);
    if asked & ONESHOT != 0 {
        interest.spent.store(true, Ordering::Relaxed);
    } else if asked & EDGE == 0 {
        set.queue(interest);
    }
    u32::try_from(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::{self, Known};
    use crate::sock::{mode, origin};
    use crate::{rt, table};
    use saiga_channel::rendezvous::Credentials;
    use saiga_channel::segment::Segment;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    /// A report of an anchor that comes late may put any registration into the ready list: the
    /// record of the one that is meant may be in use again.
    #[test]
    fn a_registration_is_reported_by_the_kernel_until_it_is_ours() {
        assert!(table::init());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("it")).expect("a client");
        let (server, _) = listener.accept().expect("the client");
        let fd = server.as_raw_fd();
        // SAFETY: no pointers.
        let epfd = unsafe { libc::epoll_create1(0) };
        epoll::open(epfd);
        let table::Entry::Epoll(set) = table::get(epfd) else {
            panic!("the set is not known")
        };
        let socket = Socket::open(fd, origin::ACCEPTED).expect("a record");
        let readable = libc::EPOLLIN.cast_unsigned();
        let wanted = Some((readable | ONESHOT, 7));
        epoll::control(epfd, set, libc::EPOLL_CTL_ADD, fd, socket, wanted).expect("it is new");
        client.write_all(b"x").expect("it is connected");
        assert_eq!(sys::poll_now(fd, libc::POLLIN), libc::POLLIN);

        let segment = Segment::create(rt::floor()).expect("memory");
        let Known::Ours(link) = links::adopt(segment, Credentials { pid: 1, uid: 0 }) else {
            panic!("it is new")
        };
        let address = core::ptr::from_ref(link).cast_mut();
        socket.link.store(address, Ordering::Release);
        socket.mode.store(mode::BOUND, Ordering::SeqCst);
        // SAFETY: the list's first member is a pool record.
        let interest = unsafe { socket.interests.load(Ordering::Relaxed).as_ref() };
        let interest = interest.expect("it was added");
        {
            let _guard = set.lock.lock().expect("it is free");
            assert_eq!(examine(set, interest), None, "the kernel reports it");
        }
        let chan = Chan::of(socket).expect("it has a link");
        assert!(!epoll::bind_all(socket, &chan), "it may fire in the kernel");
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for one event.
        assert_eq!(unsafe { libc::epoll_wait(epfd, &raw mut event, 1, 0) }, 1);
        assert!(epoll::bind_all(socket, &chan));
        let looked = || {
            let _guard = set.lock.lock().expect("it is free");
            examine(set, interest)
        };
        assert_eq!(looked(), None, "it has fired");
        epoll::control(epfd, set, libc::EPOLL_CTL_MOD, fd, socket, wanted).expect("it is there");
        assert_eq!(looked(), Some(readable));
        assert_eq!(looked(), None, "once");
    }
}
