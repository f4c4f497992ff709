# about: subprocess with the connection as stdin and stdout, with lines on their way to it
# upgraded: yes
import subprocess
import sys

import trial
from trial import recv_exactly, say

CHILD = """
import socket, sys
sock = socket.socket(fileno=int(sys.argv[1]))
for i in range(60):
    data = b""
    while len(data) < 10:
        data += sock.recv(10 - len(data))
    sock.sendall(data[::-1])
"""


def server(sock, meet):
    sock.sendall(b"some\ntext\n")
    say(recv_exactly(sock, 10))
    for i in range(60):
        sock.sendall(b"%010d" % i)
        assert recv_exactly(sock, 10) == (b"%010d" % i)[::-1]
    trial.round_trips(sock, "server", 30)
    say("end", sock.recv(1))


def client(sock, meet):
    done = subprocess.run(["head", "-n", "2"], stdin=sock, stdout=sock)
    say("head", done.returncode)
    done = subprocess.run([sys.executable, "-S", "-c", CHILD, str(sock.fileno())], pass_fds=[sock.fileno()])
    say("python", done.returncode)
    trial.round_trips(sock, "client", 30)


trial.run_pair(server, client)
