//! The events that one registration has to report, found from its channel under its set's lock.
//!
//! Each registration is reported either by the kernel or by the library. If both reported it, a
//! one-shot event would come twice, and a pool of threads would serve a connection twice, or one
//! that it has freed.

use crate::chan::Chan;
use crate::epoll::{self, EDGE, EpollSet, Interest, ONESHOT};
use crate::readiness;
use crate::send;
use crate::sock::{Pin, Socket};
use core::sync::atomic::Ordering;
use saiga_channel::direction::TxMode;
use saiga_channel::sys::{self, Fd};

/// A connection that may have room to send after [`send::overtake`], which takes too long to run
/// under the set's lock.
pub(super) struct Overdue {
    inside: Pin,
    fd: Fd,
}

impl Overdue {
    /// True when there is room: the set's bits were set then.
    pub(super) fn overtake(self) -> bool {
        let Overdue { inside, fd } = self;
        let chan = Chan::of(inside.0).filter(|_| inside.0.is_bound());
        chan.is_some_and(|chan| {
            let fd = inside.0.anchor(fd);
            let overtaken = send::overtake(fd, inside.0, &chan);
            if overtaken {
                chan.wake_own_threads();
            }
            overtaken
        })
    }
}

/// The events of a registration, if any. Puts it back into the ready list if it may have more to
/// report; otherwise the peer was asked to wake us. The caller holds the lock, and calls
/// [`Overdue::overtake`] after releasing it.
pub(super) fn examine(
    set: &'static EpollSet,
    interest: &'static Interest,
    overdue: &mut Option<Overdue>,
) -> Option<u32> {
    let silent = !interest.active.load(Ordering::Relaxed) || interest.spent.load(Ordering::Relaxed);
    let socket = interest.socket()?;
    if silent {
        return None;
    }
    if !socket.is_bound() || !interest.is_bound() {
        return examine_kept(set, interest, socket);
    }
    let chan = Chan::of(socket)?;
    let asked = interest.events.load(Ordering::Relaxed);
    let wanted = epoll::wanted(interest) | libc::POLLERR | libc::POLLHUP;
    let fd = interest.anchor(socket);
    let edge = asked & EDGE != 0;
    if edge {
        epoll::arm(interest, &chan); // Before looking: a later byte is a new edge.
    }
    let mut found = readiness::events_soon(fd, socket, &chan) & wanted;
    if found == 0 && !edge {
        epoll::arm(interest, &chan);
        found = readiness::events_soon(fd, socket, &chan) & wanted;
    }
    let lacks_room = wanted & !found & libc::POLLOUT != 0;
    if lacks_room && chan.own().tx_mode.peek() != TxMode::Ring {
        epoll::watch_for_room(set, interest, fd);
        if send::overtakes_slowly(socket, &chan) {
            note_overdue(set, interest, (socket, fd), overdue);
        }
    }
    if found != 0 {
        set.peer_cpu.store(chan.peer_cpu(), Ordering::Relaxed);
    }
    report(set, interest, found)
}

/// Notes one connection; others are queued for the next check.
fn note_overdue(
    set: &EpollSet,
    interest: &'static Interest,
    (socket, fd): (&'static Socket, Fd),
    overdue: &mut Option<Overdue>,
) {
    if overdue.is_some() {
        return set.queue(interest);
    }
    let inside = socket.pin();
    *overdue = Some(Overdue { inside, fd });
}

/// As [`examine`], for a connection on TCP or one that is being bound. The kernel reports for its
/// own registrations, but not for those that could not be given back: their watch only reports
/// changes to us.
fn examine_kept(
    set: &'static EpollSet,
    interest: &'static Interest,
    socket: &'static Socket,
) -> Option<u32> {
    if !interest.kept.load(Ordering::Relaxed) {
        return None;
    }
    let wanted = epoll::wanted(interest) | libc::POLLERR | libc::POLLHUP;
    let found = sys::poll_now(interest.anchor(socket), wanted) & wanted;
    report(set, interest, found)
}

/// Updates the registration for events that are about to be reported, if there are any.
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
    use crate::sock::Origin;
    use crate::state::ModeEvent;
    use crate::{rt, table};
    use saiga_channel::direction::TxEvent;
    use saiga_channel::rendezvous::Credentials;
    use saiga_channel::segment::Segment;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    const READABLE: u32 = libc::EPOLLIN.cast_unsigned();

    /// A connection whose server's end is registered in a set as a one-shot.
    struct Scene {
        client: TcpStream,
        server: TcpStream,
        epfd: i32,
        set: &'static EpollSet,
        socket: &'static Socket,
        interest: &'static Interest,
    }

    impl Scene {
        fn new() -> Scene {
            assert!(table::init());
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("the address");
            let client = TcpStream::connect(address).expect("a client");
            let (server, _) = listener.accept().expect("the client");
            // SAFETY: no pointers.
            let epfd = unsafe { libc::epoll_create1(0) };
            epoll::open(epfd);
            let table::Entry::Epoll(set) = table::get(epfd) else {
                panic!("the set is not known")
            };
            let fd = server.as_raw_fd();
            let socket = Socket::open(fd, Origin::Accepted).expect("a record");
            let wanted = Some((READABLE | ONESHOT, 7));
            epoll::control(epfd, set, libc::EPOLL_CTL_ADD, fd, socket, wanted).expect("it is new");
            // SAFETY: the list's first member is a pool record.
            let interest = unsafe { socket.interests.load(Ordering::Relaxed).as_ref() };
            Scene {
                client,
                server,
                epfd,
                set,
                socket,
                interest: interest.expect("it was added"),
            }
        }

        /// Has the client send a byte.
        fn send(&mut self) {
            self.client.write_all(b"x").expect("it is connected");
        }

        /// Number of events that a thread waiting in the kernel's set gets.
        fn kernel_reports(&self) -> i32 {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for one event.
            unsafe { libc::epoll_wait(self.epfd, &raw mut event, 1, 10_000) }
        }

        fn look(&self) -> Option<u32> {
            self.look_for(&mut None)
        }

        fn look_for(&self, overdue: &mut Option<Overdue>) -> Option<u32> {
            let _guard = self.set.lock.lock().expect("it is free");
            examine(self.set, self.interest, overdue)
        }

        fn arm(&self, events: u32) {
            let (fd, wanted) = (self.server.as_raw_fd(), Some((events | ONESHOT, 7)));
            let (set, modify) = (self.set, libc::EPOLL_CTL_MOD);
            let armed = epoll::control(self.epfd, set, modify, fd, self.socket, wanted);
            armed.expect("it is there");
        }

        /// Marks the socket as bound. Its registration is still the kernel's.
        fn bind(&self) -> Chan {
            let segment = Segment::create(rt::floor()).expect("memory");
            let Known::Ours(link) = links::adopt(segment, Credentials { pid: 1, uid: 0 }) else {
                panic!("it is new")
            };
            let address = core::ptr::from_ref(link).cast_mut();
            self.socket.link.store(address, Ordering::Release);
            assert!(self.socket.mode.transition(ModeEvent::Bind).is_some());
            Chan::of(self.socket).expect("it has a link")
        }
    }

    /// A late report of an anchor may put any registration into the ready list: the record of the
    /// reported one may be in use again.
    #[test]
    fn a_registration_is_reported_by_the_kernel_until_it_is_ours() {
        let mut scene = Scene::new();
        scene.send();
        let chan = scene.bind();
        assert_eq!(scene.look(), None, "the kernel reports it");
        let bind = || epoll::bind_all(scene.socket, &chan);
        assert!(!bind(), "it may fire in the kernel");
        assert_eq!(scene.kernel_reports(), 1);
        assert!(bind());
        assert_eq!(scene.look(), None, "it has fired");
        scene.arm(READABLE);
        assert_eq!(scene.look(), Some(READABLE));
        assert_eq!(scene.look(), None, "once");
    }

    #[test]
    fn a_registration_of_a_closed_descriptor_is_reported_once() {
        let mut plain = Scene::new();
        epoll::orphan(plain.socket, plain.server.as_raw_fd());
        plain.send();
        assert_eq!(plain.kernel_reports(), 1);
        assert_eq!(plain.look(), None, "the kernel reported it all the time");

        let mut former = Scene::new();
        former.send();
        let chan = former.bind();
        assert_eq!(former.kernel_reports(), 1);
        assert!(epoll::bind_all(former.socket, &chan));
        former.arm(READABLE);
        let twin = former.server.try_clone().expect("a descriptor");
        assert!(table::set_socket(twin.as_raw_fd(), former.socket));
        epoll::orphan(former.socket, former.server.as_raw_fd());
        epoll::unbind_all(former.socket, &chan);
        assert!(former.socket.mode.transition(ModeEvent::Unbind).is_some());
        assert_eq!(
            former.look(),
            Some(READABLE),
            "no number can return it to the kernel"
        );
        assert_eq!(former.look(), None, "once");
        table::clear(twin.as_raw_fd());
    }

    #[test]
    fn a_registration_forgotten_by_a_signal_handler_above_the_set_s_lock_is_silent() {
        let mut scene = Scene::new();
        scene.send();
        let chan = scene.bind();
        assert_eq!(scene.kernel_reports(), 1);
        assert!(epoll::bind_all(scene.socket, &chan));
        scene.arm(READABLE);
        {
            let _below = scene.set.lock.lock().expect("it is free");
            epoll::forget(scene.socket);
        }
        assert_eq!(scene.look(), None);
        assert!(
            scene.interest.socket().is_none(),
            "the record is another connection's soon"
        );
    }

    /// A barrier on all threads of the host may take milliseconds.
    #[test]
    fn a_check_under_the_set_s_lock_leaves_the_barrier_to_its_caller() {
        let mut scene = Scene::new();
        scene.send();
        let chan = scene.bind();
        assert_eq!(scene.kernel_reports(), 1);
        assert!(epoll::bind_all(scene.socket, &chan));
        chan.own().tx_mode.transition(TxEvent::Switch);
        chan.own().tx_mode.transition(TxEvent::End); // Its beginning was not noticed.
        let room = libc::EPOLLOUT.cast_unsigned();
        scene.arm(room);
        let mut overdue = None;
        assert_eq!(scene.look_for(&mut overdue), None);
        assert!(!scene.socket.switch_ordered.load(Ordering::SeqCst));
        assert!(overdue.expect("there may be room").overtake());
        assert_eq!(scene.look(), Some(room));
    }
}
