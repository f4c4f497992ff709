# about: xmlrpc.server with xmlrpc.client: calls, large arguments, faults, several calls in one, a new connection for each
# upgraded: any, for each call has a connection of its own
import threading
import xmlrpc.client
import xmlrpc.server

from trial import run_sides, say


def server(meet):
    def repeat(text, count):
        return text * count

    with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as service:
        service.register_function(repeat)
        service.register_multicall_functions()
        with open("port.new", "w") as file:
            file.write(str(service.server_address[1]))
        meet()
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        meet()
        service.shutdown()
        thread.join()
        say("served")


def client(meet):
    meet()
    port = int(open("port.new").read())
    with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}") as proxy:
        say(sum(len(proxy.repeat("ab", count)) for count in range(40)))
        say(len(proxy.repeat("x" * 50000, 8)))
        try:
            proxy.nothing()
        except xmlrpc.client.Fault as fault:
            say(fault.faultCode, fault.faultString)
        many = xmlrpc.client.MultiCall(proxy)
        for count in range(20):
            many.repeat("y", count)
        say([len(text) for text in many()])
    meet()


run_sides(server, client)
