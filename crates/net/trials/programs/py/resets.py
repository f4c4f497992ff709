# about: ConnectionResetError, BrokenPipeError and EOF as Python sees them after an upgrade
# upgraded: yes
import socket
import struct

import trial
from trial import say

listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()


def serve(meet):
    for way in range(3):
        sock, _ = listener.accept()
        trial.warm_up(sock, "server")
        if way == 0:
            sock.close()
        elif way == 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        else:
            meet()
            while len(sock.recv(100, socket.MSG_PEEK)) < 6:
                pass
            sock.close()  # with unread data
        meet()


def ask(meet):
    listener.close()
    for way in range(3):
        with socket.create_connection(address) as sock:
            trial.warm_up(sock, "client")
            if way == 2:
                sock.sendall(b"unread")
                meet()
            meet()
            for attempt in range(2):
                try:
                    say(way, "recv", sock.recv(10))
                except OSError as error:
                    say(way, "recv", type(error).__name__)
            outcome = None
            while outcome is None:  # a clean close answers the first send only with a reset
                try:
                    sock.sendall(b"x")
                except OSError as error:
                    outcome = type(error).__name__
            say(way, "send", outcome in ("BrokenPipeError", "ConnectionResetError"))


trial.run_sides(serve, ask)
