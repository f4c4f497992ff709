# about: select.poll and select.epoll objects with an upgraded socket, a pipe and errors
# upgraded: yes
import os
import select
import socket

import trial
from trial import recv_exactly, say


def server(sock, meet):
    meet()
    sock.sendall(b"data")
    meet()
    meet()
    sock.shutdown(socket.SHUT_WR)
    meet()


def client(sock, meet):
    inward, outward = os.pipe()
    names = {sock.fileno(): "sock", inward: "pipe"}
    poll, epoll = select.poll(), select.epoll()
    for each in (sock.fileno(), inward):
        poll.register(each, select.POLLIN)
        epoll.register(each, select.EPOLLIN | select.EPOLLRDHUP)

    def by_epoll(timeout, wanted):
        # A set may report a kernel descriptor one call after an upgraded one.
        events = {}
        for _ in range(1000):
            events.update(epoll.poll(timeout / 1000))
            if len(events) >= wanted:
                break
        return events.items()

    def seen(what, timeout, wanted=0):
        say(
            what,
            sorted((names[fd], event) for fd, event in poll.poll(timeout)),
            sorted((names[fd], event) for fd, event in by_epoll(timeout, wanted)),
            [names[fd.fileno() if hasattr(fd, "fileno") else fd] for fd in select.select([sock, inward], [], [], timeout / 1000)[0]],
        )

    seen("quiet", 0)
    meet()
    meet()
    seen("data", 20000)
    os.write(outward, b"p")
    seen("both", 20000, 2)
    recv_exactly(sock, 4)
    seen("pipe", 20000)
    os.read(inward, 1)
    seen("quiet", 10)
    epoll.modify(sock.fileno(), select.EPOLLOUT)
    say("out", [event for _, event in epoll.poll(20)])
    epoll.modify(sock.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
    meet()
    meet()
    seen("end", 20000)
    epoll.unregister(sock.fileno())
    try:
        epoll.unregister(sock.fileno())
    except OSError as error:
        say(error.errno)


trial.run_pair(server, client)
