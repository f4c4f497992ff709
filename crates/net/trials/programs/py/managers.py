# about: multiprocessing.managers over TCP: shared objects, threads of the server, queues, two clients, an exception from afar
# upgraded: any, for its connections are hidden in proxies
import os
from multiprocessing.connection import Client
from multiprocessing.managers import BaseManager, dispatch
from queue import Empty, Queue

from trial import run_sides, say

queue, table = Queue(), {}


class Shared(BaseManager):
    pass


Shared.register("queue", callable=lambda: queue)
Shared.register("table", callable=lambda: table)


def server(meet):
    shared = Shared(("127.0.0.1", 0), b"secret")
    service = shared.get_server()
    with open("port.new", "w") as file:
        file.write(str(service.address[1]))
    meet()
    try:
        service.serve_forever()
    except SystemExit as end:
        say("ended", end.code)


def work(port):
    shared = Shared(("127.0.0.1", port), b"secret")
    shared.connect()
    tasks, table = shared.queue(), shared.table()
    while (task := tasks.get()) is not None:
        table.update({task: task * task})


def client(meet):
    meet()
    port = int(open("port.new").read())
    workers = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            work(port)
            os._exit(0)
        workers.append(pid)
    shared = Shared(("127.0.0.1", port), b"secret")
    shared.connect()
    tasks, table = shared.queue(), shared.table()
    for task in range(100):
        tasks.put(task)
    for _ in workers:
        tasks.put(None)
    for pid in workers:
        say("worker", os.waitpid(pid, 0)[1])
    squares = table.copy()
    say(sum(squares.values()), len(squares))
    tasks.put(b"z" * 300000)
    say(len(tasks.get()))
    try:
        tasks.get(timeout=0.01)
    except Empty:
        say("empty")
    connection = Client(("127.0.0.1", port), authkey=b"secret")
    dispatch(connection, None, "shutdown")
    connection.close()


run_sides(server, client)
