# about: os.fork workers that accept on one listener, a parent that replaces one that is killed, and clients that come again after a reset
# upgraded: any
import os
import signal
import socket

import trial
from trial import recv_exactly, say

listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()


def work():
    """Serves connection after connection; 'die' ends the worker in the middle of one."""
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with sock:
            while text := sock.recv(64):
                if text == b"die":
                    os.kill(os.getpid(), signal.SIGKILL)
                sock.sendall(text)


def start():
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def serve(meet):
    workers = {start() for _ in range(3)}
    for _ in range(4):
        pid, status = os.wait()
        say("killed by", os.WTERMSIG(status))
        workers.remove(pid)
        workers.add(start())
    meet()
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    say(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in workers))


def talk(turns):
    with socket.create_connection(address) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(turns):
            text = b"%064d" % i
            sock.sendall(text)
            assert recv_exactly(sock, 64) == text
        return sock.dup() if turns == 70 else None


def ask(meet):
    listener.close()
    for _ in range(4):
        for _ in range(5):
            talk(60)
        with talk(70) as sock:
            sock.sendall(b"die")
            say("end", sock.recv(1))
    talk(60)
    meet()


trial.run_sides(serve, ask)
