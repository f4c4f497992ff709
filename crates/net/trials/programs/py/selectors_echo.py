# about: every selector class serves five connections, with a pipe beside them
# upgraded: yes
import os
import selectors
import socket

import trial
from trial import recv_exactly, say

CLASSES = ["SelectSelector", "PollSelector", "EpollSelector"]
COUNT = 5


def server(listener, meet):
    for name in CLASSES:
        with getattr(selectors, name)() as selector:
            inward, outward = os.pipe()
            selector.register(inward, selectors.EVENT_READ, "pipe")
            socks = []
            for _ in range(COUNT):
                sock, _ = listener.accept()
                sock.setblocking(False)
                selector.register(sock, selectors.EVENT_READ, "sock")
                socks.append(sock)
            messages, pipes, ends = 0, 0, 0
            while ends < COUNT:
                for key, _ in selector.select():
                    if key.data == "pipe":
                        pipes += len(os.read(inward, 1))
                        continue
                    data = key.fileobj.recv(4096)
                    if not data:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        ends += 1
                        continue
                    key.fileobj.sendall(data)
                    messages += len(data)
                    if messages % (100 * 64) == 0:
                        os.write(outward, b"p")
            while pipes < messages // 6400:
                pipes += len(os.read(inward, 100))
            say(name, "bytes", messages, "pipe", pipes, "ends", ends)
            os.close(inward), os.close(outward)
        meet()


def client(address, meet):
    for _ in CLASSES:
        socks = [socket.create_connection(address) for _ in range(COUNT)]
        right = 0
        for i in range(60):
            for sock in socks:
                sock.sendall(bytes([i]) * 64)
            for sock in socks:
                right += recv_exactly(sock, 64) == bytes([i]) * 64

        def more():
            for _ in range(20):
                socks[0].sendall(b"x" * 64)
                recv_exactly(socks[0], 64)

        trial.prove(socks[0], more, 20 * 64)
        say("right", right)
        for sock in socks:
            sock.close()
        meet()


listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
trial.run_sides(lambda meet: server(listener, meet), lambda meet: client(address, meet))
