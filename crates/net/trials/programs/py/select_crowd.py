# about: one select loop and fifty clients that come, talk, fall silent and leave in every way
# upgraded: yes
import select
import socket
import struct

from trial import prove, recv_exactly, run_sides, say

CLIENTS = 50


def server(meet):
    listener = socket.create_server(("127.0.0.1", 0))
    with open("port.new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    meet()
    known, ends, resets, total = {listener: b""}, 0, 0, 0
    while ends + resets < CLIENTS:
        readable, _, wrong = select.select(list(known), [], list(known), 20)
        assert readable and not wrong, (readable, wrong)
        for sock in readable:
            if sock is listener:
                fresh, _ = listener.accept()
                known[fresh] = b""
                continue
            try:
                data = sock.recv(5000)
            except ConnectionResetError:
                data, resets, ends = b"", resets + 1, ends - 1
            if data:
                total += len(data)
                try:
                    sock.sendall(data.upper())
                except (ConnectionResetError, BrokenPipeError):
                    pass  # it says so at the next read, too
            else:
                ends += 1
                del known[sock]
                sock.close()
    say("ends", ends + resets, "left", len(known) - 1, "at least", total >= CLIENTS * 600)


def shout(sock):
    sock.sendall(b"abc" * 2000)
    return recv_exactly(sock, 6000)


def client(meet):
    meet()
    port = int(open("port.new").read())
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS)]
    right = 0
    for round in range(20):
        for number, sock in enumerate(socks):
            sock.sendall(b"abc" * (10 + number))
        for number, sock in enumerate(socks):
            want, got = 3 * (10 + number), b""
            while len(got) < want:
                got += sock.recv(want - len(got))
            right += got == b"ABC" * (10 + number)
    say("right", right)
    for sock in socks:
        assert prove(sock, lambda: shout(sock), 6000) == b"ABC" * 2000
    for number, sock in enumerate(socks):
        if number % 3 == 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if number % 3 == 1:
            sock.sendall(b"parting")
            sock.shutdown(socket.SHUT_WR)
        sock.close()


run_sides(server, client)
