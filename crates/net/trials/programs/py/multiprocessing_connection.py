# about: multiprocessing.connection over TCP: pickles, big ones, poll, authentication, EOF
# upgraded: yes
from multiprocessing.connection import AuthenticationError, Client, Listener, wait

import trial
from trial import say

listener = Listener(("127.0.0.1", 0), authkey=b"secret")
address = listener.address


def serve(meet):
    try:
        listener.accept()
    except AuthenticationError as error:
        say("refused:", error)
    with listener.accept() as connection:
        while True:
            try:
                item = connection.recv()
            except EOFError:
                say("end")
                break
            connection.send(item if not isinstance(item, bytes) else item[::-1])
    listener.close()


def ask(meet):
    try:
        Client(address, authkey=b"wrong")
    except AuthenticationError as error:
        say("refused:", error)
    with Client(address, authkey=b"secret") as connection:
        for i in range(60):
            connection.send({"number": i, "list": list(range(i))})
            assert connection.recv() == {"number": i, "list": list(range(i))}
        say("poll", connection.poll(0))
        connection.send("waited for")
        say("wait", wait([connection], 10) == [connection], connection.poll(10), connection.recv())

        def big():
            data = bytes(range(256)) * 8000
            connection.send(data)
            return connection.recv() == data[::-1]

        say("big", trial.prove(connection.fileno(), big, 256 * 8000))
    try:
        connection.send(1)
    except OSError as error:
        say(error)


trial.run_sides(serve, ask)
