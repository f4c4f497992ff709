# about: a dual-stack create_server reached by ::1 and by 127.0.0.1, flow info and scope in the names
# upgraded: yes
import socket

import trial
from trial import say

listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
port = listener.getsockname()[1]


def serve(meet):
    for _ in range(2):
        sock, address = listener.accept()
        say("from", address[0], address[2:])
        trial.warm_up(sock, "server")
        say("end", sock.recv(1))
        sock.close()


def ask(meet):
    listener.close()
    for host in ("::1", "127.0.0.1"):
        with socket.create_connection((host, port)) as sock:
            trial.warm_up(sock, "client")
            say(sock.family.name, sock.getpeername()[0])


trial.run_sides(serve, ask)
