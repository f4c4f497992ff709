# about: socketserver.ForkingTCPServer: a child serves each connection
# upgraded: yes
import socket
import socketserver

import trial
from trial import recv_exactly, say

CLIENTS = 5


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)


class Server(socketserver.ForkingTCPServer):
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Handler)


def serve(meet):
    for _ in range(CLIENTS):
        server.handle_request()
    meet()
    server.server_close()
    say("children left", len(server.active_children or ()))


def ask(meet):
    server.socket.close()
    for number in range(CLIENTS):
        with socket.create_connection(server.server_address) as sock:
            trial.round_trips(sock, "client", 0)
            right = 0
            for i in range(100):
                sock.sendall(bytes([i]) * 100)
                right += recv_exactly(sock, 100) == bytes([i]) * 100
            trial.prove(sock, lambda: [(sock.sendall(b"y" * 64), recv_exactly(sock, 64)) for _ in range(20)], 1280)
            say(number, right)
    meet()


trial.run_sides(serve, ask)
