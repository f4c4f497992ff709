# about: socket methods: recv_into, sendmsg, recvmsg, timeouts, makefile, detach, dup, peek, names
# upgraded: yes
import socket

import trial
from trial import recv_exactly, say


def server(sock, meet):
    sock.sendmsg([b"three ", b"parts", b" here"])
    meet()
    sock.sendall(b"0123456789")
    meet()
    meet()
    with sock.makefile("rwb") as stream:
        for line in stream:
            stream.write(line.upper())
            stream.flush()
            if line == b"bye\n":
                break
    sock.shutdown(socket.SHUT_WR)
    say("end", sock.recv(10))


def client(sock, meet):
    meet()
    say(sock.recv(5, socket.MSG_PEEK), recv_exactly(sock, 16))
    buffer = bytearray(16)
    meet()
    while sock.recv_into(buffer, 16, socket.MSG_PEEK) < 10:
        pass
    say(sock.recv_into(memoryview(buffer)[2:6]), bytes(buffer))
    say(sock.recvmsg_into([memoryview(buffer)[:1], memoryview(buffer)[1:3]])[0], bytes(buffer))
    say(sock.recvmsg(100))
    sock.settimeout(0.03)
    try:
        sock.recv(1)
    except TimeoutError as error:
        say("timeout", error)
    sock.setblocking(False)
    try:
        sock.recv(1)
    except BlockingIOError as error:
        say("would block", error.errno)
    sock.setblocking(True)
    meet()
    twin = sock.dup()
    for line in (b"hello\n", b"again\n", b"bye\n"):
        twin.sendall(line)
        say(recv_exactly(sock, len(line)))
    twin.close()
    say("end", sock.recv(10), sock.type == socket.SOCK_STREAM, sock.getsockname()[0], sock.getpeername()[0])
    number = sock.detach()
    again = socket.socket(fileno=number)
    again.close()
    try:
        again.recv(1)
    except OSError as error:
        say("closed", error.errno)


trial.run_pair(server, client)
