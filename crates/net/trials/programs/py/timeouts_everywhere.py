# about: settimeout on accept, connect, recv, recv_into, recvmsg, sendall and makefile: TimeoutError each time, and the bytes are right afterwards
# upgraded: yes
import socket

import trial
from trial import recv_exactly, say


def timed_out(what, call, *args):
    try:
        say(what, call(*args))
    except TimeoutError as error:
        say(what, type(error).__name__, error)


def server(sock, meet):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.03)
        timed_out("accept", listener.accept)
    meet()
    sock.settimeout(0.05)
    sent = 0
    try:
        while True:
            sent += sock.send(b"x" * 65536)
    except TimeoutError as error:
        say("send", error)
    meet()
    sock.settimeout(None)
    sock.sendall(b"behind")
    sock.shutdown(socket.SHUT_WR)
    say(recv_exactly(sock, 8) == sent.to_bytes(8, "little"))


def client(sock, meet):
    sock.settimeout(0.03)
    timed_out("recv", sock.recv, 10)
    timed_out("recv_into", sock.recv_into, bytearray(4))
    timed_out("recvmsg", sock.recvmsg, 10)
    timed_out("recvfrom", sock.recvfrom, 10)
    timed_out("waitall", sock.recv, 10, socket.MSG_WAITALL)
    with sock.makefile("rb") as stream:
        timed_out("readline", stream.readline)
        try:
            stream.readline()
        except OSError as error:
            say("then", error)
    say("timeout", sock.gettimeout())
    meet()
    meet()
    sock.settimeout(20)
    total, last = 0, b""
    while part := sock.recv(1 << 20):
        total += len(part)
        last = (last + part)[-6:]
    say(last)
    sock.sendall((total - 6).to_bytes(8, "little"))


trial.run_pair(server, client)
