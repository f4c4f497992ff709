# about: multiprocessing sends an accepted connection to a worker process that was started before: pickled sockets, used there, the sender's copy closed
# upgraded: any
import multiprocessing
import socket

import trial
from trial import recv_exactly, say

listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()


def work(channel, number):
    """Takes connections until it is given none, and echoes on each."""
    while (item := channel.recv()) is not None:
        sock, warm = item
        with sock:
            sock.sendall(b"worker %d, %d\n" % (number, warm))
            while data := sock.recv(10000):
                sock.sendall(data)
        channel.send("done")


def serve(meet):
    context = multiprocessing.get_context("fork")
    workers = []
    for number in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, number))
        process.start()
        theirs.close()
        workers.append((process, ours))
    for turn in range(6):
        process, channel = workers[turn % 2]
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        warm = 40 if turn >= 2 else 0
        for _ in range(warm):
            sock.sendall(recv_exactly(sock, 64))
        channel.send((sock, warm))
        sock.close()
        say(turn, channel.recv())
    for process, channel in workers:
        channel.send(None)
        process.join()
        say("exit", process.exitcode)


def ask(meet):
    listener.close()
    for turn in range(6):
        with socket.create_connection(address) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if turn >= 2:
                for i in range(40):
                    sock.sendall(bytes([i]) * 64)
                    assert recv_exactly(sock, 64) == bytes([i]) * 64
            stream = sock.makefile("rb")
            say(stream.readline())
            for i in range(60):
                sock.sendall(b"%063d\n" % i)
                assert stream.readline() == b"%063d\n" % i
            sock.shutdown(socket.SHUT_WR)
            say(stream.read())


trial.run_sides(serve, ask)
