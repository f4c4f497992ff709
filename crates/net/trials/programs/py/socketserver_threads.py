# about: socketserver.ThreadingTCPServer with six clients at once
# upgraded: yes
import socket
import socketserver
import threading

import trial
from trial import recv_exactly, say

CLIENTS = 6


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line[::-1])


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Handler)


def serve(meet):
    trial.serve_until(server, meet)
    say("closed")


def ask(meet):
    server.socket.close()
    results = []

    def talk(number):
        with socket.create_connection(server.server_address) as sock:
            right = 0
            for i in range(100):
                line = f"{number} {i:05}".encode()
                sock.sendall(line + b"\n")
                right += recv_exactly(sock, len(line) + 1) == b"\n" + line[::-1]
            trial.prove(sock, lambda: [(sock.sendall(b"y" * 63 + b"\n"), recv_exactly(sock, 64)) for _ in range(20)], 1280)
            results.append(right)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(results)
    meet()


trial.run_sides(serve, ask)
