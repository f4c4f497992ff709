# about: logging's SocketHandler to a socketserver that unpickles: records of several threads and two processes, all of them whole
# upgraded: any, for nothing comes back
import logging
import logging.handlers
import os
import pickle
import socketserver
import struct
import threading

from trial import run_sides, say

THREADS, RECORDS = 4, 120


def server(meet):
    counts, lock, complete = {}, threading.Lock(), threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while header := self.rfile.read(4):
                record = pickle.loads(self.rfile.read(struct.unpack(">L", header)[0]))
                with lock:
                    counts[record["msg"][:4]] = counts.get(record["msg"][:4], 0) + 1
                    if sum(counts.values()) == 2 * THREADS * RECORDS:
                        complete.set()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as service:
        with open("port.new", "w") as file:
            file.write(str(service.server_address[1]))
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        meet()
        say("all of them", complete.wait(20))
        service.shutdown()
        thread.join()
    say(sorted(counts.items()))


def log(port, name):
    handler = logging.handlers.SocketHandler("127.0.0.1", port)
    logger = logging.getLogger(name)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)

    def write(number):
        for i in range(RECORDS):
            logger.info("%s%d %s", name, number, "." * i, extra={"i": i})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.close()


def client(meet):
    meet()
    port = int(open("port.new").read())
    child = os.fork()
    log(port, "kid" if child == 0 else "dad")
    if child == 0:
        os._exit(0)
    say(os.waitpid(child, 0)[1])


run_sides(server, client)
