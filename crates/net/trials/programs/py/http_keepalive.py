# about: http.server with http.client keep-alive and urllib: GET, POST, chunked, large bodies, errors
# upgraded: yes
import http.client
import http.server
import urllib.error
import urllib.request

import trial
from trial import say


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
        elif self.path == "/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(50):
                self.wfile.write(b"5\r\n%05d\r\n" % i)
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.answer(self.path.encode() * int(self.headers.get("X-Times", "1")))

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"]))[::-1])


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        say("error in handler")


server = Server(("127.0.0.1", 0), Handler)
url = "http://127.0.0.1:%d" % server.server_address[1]


def serve(meet):
    trial.serve_until(server, meet)


def ask(meet):
    server.socket.close()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])

    def get(path, **headers):
        connection.request("GET", path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()

    say(all(get(f"/{i}") == (200, f"/{i}".encode()) for i in range(60)))
    status, body = trial.prove(connection.sock, lambda: get("/abcdefgh", X_Times="100000"), 900000)
    say(status, len(body), body == b"/abcdefgh" * 100000)
    say(get("/missing")[0])
    status, body = get("/chunks")
    say(status, body == b"".join(b"%05d" % i for i in range(50)))
    connection.request("POST", "/", body=bytes(range(256)) * 2000)
    body = connection.getresponse().read()
    say(len(body), body == (bytes(range(256)) * 2000)[::-1])
    connection.close()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for i in range(20):
        assert opener.open(f"{url}/u{i}").read() == f"/u{i}".encode()
    try:
        opener.open(url + "/missing")
    except urllib.error.HTTPError as error:
        say("urllib", error.code)
    meet()


trial.run_sides(serve, ask)
