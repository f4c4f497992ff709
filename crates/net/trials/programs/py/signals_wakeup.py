# about: signals during blocking calls: PEP 475 retries, a handler that raises, set_wakeup_fd
# upgraded: yes
import os
import signal
import socket

import trial
from trial import recv_exactly, say


class Stop(Exception):
    pass


def server(sock, meet):
    meet()
    sock.sendall(b"late")
    meet()
    trial.round_trips(sock, "server", 30)


def client(sock, meet):
    hits = []
    left, right = socket.socketpair()
    right.setblocking(False)
    signal.set_wakeup_fd(right.fileno())

    def count(number, frame):
        hits.append(number)
        if len(hits) == 3:
            signal.setitimer(signal.ITIMER_REAL, 0)
            meet()  # now the server sends: recv was retried three times

    signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    say(recv_exactly(sock, 4), len(hits), left.recv(10) == bytes([signal.SIGALRM] * 3))

    def stop(number, frame):
        raise Stop

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        sock.recv(1)
    except Stop:
        say("stopped")
    meet()
    signal.set_wakeup_fd(-1)
    trial.round_trips(sock, "client", 30)
    say("and on", os.getpid() > 0)


trial.run_pair(server, client)
