"""x_protocol PORT ROUNDS: asks a server for its capabilities by MySQL's X protocol, over and
over on one connection. Says "ROUNDS equal answers"."""

import socket
import struct
import sys

GET_CAPABILITIES, CAPABILITIES, NOTICE = 1, 2, 11


def exactly(sock, count):
    got = b""
    while len(got) < count:
        more = sock.recv(count - len(got))
        if not more:
            sys.exit("the server has closed the connection")
        got += more
    return got


def message(sock):
    """The next one that is not a notice: its type and what it says."""
    while True:
        length, kind = struct.unpack("<IB", exactly(sock, 5))
        body = exactly(sock, length - 1)
        if kind != NOTICE:
            return kind, body


port, rounds = int(sys.argv[1]), int(sys.argv[2])
with socket.create_connection(("127.0.0.1", port)) as sock:
    answers = set()
    for _ in range(rounds):
        sock.sendall(struct.pack("<IB", 1, GET_CAPABILITIES))
        answers.add(message(sock))
    [(kind, body)] = answers
    if kind != CAPABILITIES or b"authentication.mechanisms" not in body:
        sys.exit(f"an odd answer of type {kind}: {body!r}")
print(rounds, "equal answers")
