"""A blocking echo server and its client, with addresses and even the client's port to choose.

Usage: talk.py serve HOST PORT MARK | talk.py ask HOST PORT OWN_PORT MARK MESSAGES. Each side sends its MARK
with every message and prints the other's at the end: "checked N of MARK"."""

import socket
import sys


def exactly(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            return data
        data += part
    return data


def serve(host, port, mark):
    listener = socket.create_server((host, int(port)))
    print("listening", flush=True)
    while True:
        sock, _ = listener.accept()
        while message := exactly(sock, 64):
            sock.sendall(mark.encode().ljust(16) + message[16:])
        sock.close()


def ask(host, port, own_port, mark, messages):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", int(own_port)))
    sock.settimeout(60)
    sock.connect((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    marks = set()
    for at in range(int(messages)):
        sock.sendall(mark.encode().ljust(16) + str(at).encode().ljust(48))
        answer = exactly(sock, 64)
        assert answer[16:].strip() == str(at).encode(), answer
        marks.add(answer[:16].strip().decode())
    print("checked", messages, "of", *sorted(marks))


{"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
