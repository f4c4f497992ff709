# about: subprocess with the connection as stdin and stdout, and pass_fds to a Python that goes on with it
# upgraded: yes
import subprocess
import sys

import trial
from trial import recv_exactly, say

CHILD = """
import socket, sys
sock = socket.socket(fileno=int(sys.argv[1]))
print("up", flush=True)
for i in range(60):
    data = b""
    while len(data) < 10:
        data += sock.recv(10 - len(data))
    sock.sendall(data[::-1])
"""


def server(sock, meet):
    meet()
    sock.sendall(b"some\ntext\n")
    say(recv_exactly(sock, 10))
    meet()
    meet()
    for i in range(60):
        sock.sendall(b"%010d" % i)
        assert recv_exactly(sock, 10) == (b"%010d" % i)[::-1]
    trial.round_trips(sock, "server", 30)
    say("end", sock.recv(1))


def client(sock, meet):
    child = subprocess.Popen(["sh", "-c", "echo up >&2; exec head -n 2"], stdin=sock, stdout=sock, stderr=subprocess.PIPE)
    say(child.stderr.readline())
    meet()
    say("head", child.wait())
    meet()
    child = subprocess.Popen([sys.executable, "-S", "-c", CHILD, str(sock.fileno())], pass_fds=[sock.fileno()], stdout=subprocess.PIPE)
    say(child.stdout.readline())
    meet()
    say("python", child.wait())
    trial.round_trips(sock, "client", 30)


trial.run_pair(server, client)
