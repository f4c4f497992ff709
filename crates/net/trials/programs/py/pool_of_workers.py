# about: a ThreadPoolExecutor that serves what one selector finds ready, and a client's pool that shares eight connections through a queue
# upgraded: yes
import queue
import selectors
import socket
from concurrent.futures import ThreadPoolExecutor

import trial
from trial import recv_exactly, say

CONNECTIONS, REQUESTS = 8, 1200
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()


def answer(sock, back):
    """Serves one request; the connection goes back to the selector, or ends."""
    size = sock.recv(1)
    if not size:
        sock.close()
        back.put(None)
        return
    sock.sendall(recv_exactly(sock, size[0])[::-1])
    back.put(sock)


def serve(meet):
    selector, back, wake = selectors.DefaultSelector(), queue.Queue(), socket.socketpair()
    served = ended = 0
    with ThreadPoolExecutor(4) as pool:
        for _ in range(CONNECTIONS):
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(sock, selectors.EVENT_READ)
        selector.register(wake[0], selectors.EVENT_READ)

        def work(sock):
            answer(sock, back)
            wake[1].send(b"w")

        while ended < CONNECTIONS:
            for key, _ in selector.select():
                if key.fileobj is wake[0]:
                    for _ in wake[0].recv(1000):
                        if sock := back.get():
                            selector.register(sock, selectors.EVENT_READ)
                        else:
                            ended += 1
                else:
                    selector.unregister(key.fileobj)
                    served += 1
                    pool.submit(work, key.fileobj)
    say("served", served - ended, "ended", ended)


def ask(meet):
    listener.close()
    free = queue.Queue()
    for _ in range(CONNECTIONS):
        sock = socket.create_connection(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        free.put(sock)

    def request(number):
        sock = free.get()
        text = b"%d" % number * (number % 20 + 1)
        sock.sendall(bytes([len(text)]) + text)
        right = recv_exactly(sock, len(text)) == text[::-1]
        free.put(sock)
        return right

    with ThreadPoolExecutor(6) as pool:
        say(sum(pool.map(request, range(REQUESTS))))

    def traffic():
        for _ in range(20):
            sock.sendall(bytes([200]) + b"z" * 200)
            recv_exactly(sock, 200)

    while not free.empty():
        sock = free.get()
        trial.prove(sock, traffic, 4000)
        sock.close()


trial.run_sides(serve, ask)
