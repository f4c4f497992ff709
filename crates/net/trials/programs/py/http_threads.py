# about: ThreadingHTTPServer with ten client threads: keep-alive, posts, pipelined requests, a client that leaves in the middle
# upgraded: yes
import concurrent.futures
import http.client
import http.server
import socket
import threading

from trial import prove, run_sides, say


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(self.path.encode() * 100)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"]))[::-1])


def server(meet):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as service:
        service.handle_error = lambda *words: None
        with open("port.new", "w") as file:
            file.write(str(service.server_port))
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        meet()
        meet()
        service.shutdown()
        thread.join()


def ask_large(link):
    link.request("POST", "/large", b"l" * 50_000)
    assert link.getresponse().read() == b"l" * 50_000


def session(port, number):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    right = 0
    for i in range(40):
        path = f"/{number}/{i}"
        link.request("GET", path)
        right += link.getresponse().read() == path.encode() * 100
        body = bytes([number, i]) * (i * 300 + 1)
        link.request("POST", path, body)
        right += link.getresponse().read() == body[::-1]
    prove(link.sock, lambda: ask_large(link), 50_000)
    link.close()
    return right


def client(meet):
    meet()
    port = int(open("port.new").read())
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        say(sum(pool.map(lambda number: session(port, number), range(10))))
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % i for i in range(30)))
        raw.shutdown(socket.SHUT_WR)
        text = b""
        while part := raw.recv(65536):
            text += part
        say(text.count(b"HTTP/1.1 200"), text.count(b"/29"))
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nonly a part")
    say(session(port, 77))
    meet()


run_sides(server, client)
