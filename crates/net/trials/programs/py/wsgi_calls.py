# about: wsgiref: a WSGI application behind simple_server, asked by urllib and by hand: streams, headers, errors, HTTP/1.0 ends
# upgraded: any
import socket
import urllib.error
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

import trial
from trial import say


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (b"%d\n" % i for i in range(2000))
    if path == "/echo":
        size = int(environ["CONTENT_LENGTH"])
        body = environ["wsgi.input"].read(size)
        start_response("201 Created", [("X-Method", environ["REQUEST_METHOD"])])
        return [body[::-1]]
    start_response("404 Not Found", [])
    return []


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


server = make_server("127.0.0.1", 0, application, handler_class=Quiet)
url = f"http://127.0.0.1:{server.server_port}"


def serve(meet):
    trial.serve_until(server, meet)
    say("closed")


def ask(meet):
    server.socket.close()
    for _ in range(5):
        with urllib.request.urlopen(url + "/stream") as answer:
            lines = answer.read().split(b"\n")
            say(answer.status, len(lines), lines[-2])
    for size in (0, 1, 200000):
        request = urllib.request.Request(url + "/echo", data=b"ab" * size, method="PUT")
        with urllib.request.urlopen(request) as answer:
            say(answer.status, answer.headers["X-Method"], answer.read() == b"ba" * size)
    try:
        urllib.request.urlopen(url + "/nothing")
    except urllib.error.HTTPError as error:
        say(error.code, error.read())
    with socket.create_connection(("127.0.0.1", server.server_port)) as sock:
        sock.sendall(b"GET /stream HTTP/1.0\r\n")
        sock.sendall(b"\r\n")
        text = b""
        while part := sock.recv(777):
            text += part
        say(text.split(b"\r\n")[0], text.endswith(b"1999\n"))
    with socket.create_connection(("127.0.0.1", server.server_port)) as sock:
        sock.sendall(b"nonsense\r\n")
        say(b"400" in sock.recv(1000, socket.MSG_WAITALL))
    meet()


trial.run_sides(serve, ask)
