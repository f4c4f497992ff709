# about: socket.send_fds and recv_fds: an upgraded connection and a listener go to another process, both are used there
# upgraded: yes
import os
import socket

from trial import recv_exactly, round_trips, run_pair, say


def server(sock, meet):
    round_trips(sock, "server", 60)
    sock.sendall(b"over there")
    say(recv_exactly(sock, 4), sock.recv(1))


def client(sock, meet):
    ours, theirs = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        sock.close()
        ours.close()
        note, fds, flags, _ = socket.recv_fds(theirs, 100, 4)
        moved, listening = (socket.socket(fileno=fd) for fd in fds)
        round_trips(moved, "client", 60)
        data = recv_exactly(moved, 10)
        accepted, _ = listening.accept()
        round_trips(accepted, "server", 60)
        accepted.sendall(note + b": " + data)
        moved.sendall(b"bye!")
        os._exit(0)
    socket.send_fds(ours, [b"two"], [sock.fileno(), listener.fileno()])
    sock.close()
    second = socket.create_connection(listener.getsockname())
    listener.close()
    round_trips(second, "client", 60)
    say(recv_exactly(second, 15), second.recv(1))
    say("child", os.waitpid(child, 0)[1])


run_pair(server, client)
