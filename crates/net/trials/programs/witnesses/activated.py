"""A socket-activated echo server: serves the listener that it finds at descriptor 3.

Usage: activated.py. LISTEN_FDS and LISTEN_PID are as sd_listen_fds(3) wants them."""

import os
import socket
import threading

assert os.environ["LISTEN_FDS"] == "1" and int(os.environ["LISTEN_PID"]) == os.getpid()
listener = socket.socket(fileno=3)
assert listener.type == socket.SOCK_STREAM and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def serve(sock):
    while data := sock.recv(100_000):
        sock.sendall(data)
    sock.close()


while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
