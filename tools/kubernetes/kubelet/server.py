"""What an API server asks a kubelet for: GET /containerLogs/NAMESPACE/POD/CONTAINER, what a container said; POST
/exec/NAMESPACE/POD/CONTAINER, a command in it (execution.py)."""
import datetime
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import execution


def wanted(lines, query):
    """Those lines ("TIME text") that sinceSeconds, sinceTime and tailLines leave."""
    since = query.get("sinceTime", "")
    if "sinceSeconds" in query:
        moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=int(query["sinceSeconds"]))
        since = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    # Without the Z: "...51.5" is after "...51", and as text "...51.5Z" is before "...51Z".
    lines = [line for line in lines if line.split(" ", 1)[0].rstrip("Z") >= since.rstrip("Z")]
    return lines[len(lines) - int(query["tailLines"]):] if int(query.get("tailLines", len(lines))) < len(lines) else lines


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pods = None  # () -> the kubelet's pods, given by `serve`

    def _container(self, what):
        """That of the path /WHAT/NAMESPACE/POD/CONTAINER; an answer is given where there is none."""
        parts = urlsplit(self.path).path.strip("/").split("/")
        pod = None
        if parts[0] == what and len(parts) == 4:
            pod = next((p for p in self.pods() if p.path.endswith(f"/{parts[1]}/pods/{parts[2]}")), None)
        container = pod.containers.get(parts[3]) if pod else None
        if container is None:
            self.send_error(404, "no such container has started here")
        return container

    def do_POST(self):
        if container := self._container("exec"):
            execution.serve(self, container, parse_qs(urlsplit(self.path).query))

    def do_GET(self):
        query = {key: values[-1] for key, values in parse_qs(urlsplit(self.path).query).items()}
        container = self._container("containerLogs")
        if container is None:
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with open(container.log, encoding="utf-8") as log:
            self._say(wanted(log.readlines(), query), query)
            while query.get("follow") == "true":
                ended = container.poll() is not None
                self._say(log.readlines(), query)
                if ended:
                    break
                time.sleep(0.05)
        self.wfile.write(b"0\r\n\r\n")

    def _say(self, lines, query):
        if query.get("timestamps") != "true":
            lines = [line.split(" ", 1)[1] for line in lines]
        text = "".join(lines).encode()
        if text:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()

    def log_message(self, *_):
        pass


def serve(folder, pods):
    """On a free port of 127.0.0.1, until this process ends. Returns the port."""
    handler = type("PodsHandler", (Handler,), {"pods": staticmethod(pods)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/pki/apiserver.crt", f"{folder}/pki/apiserver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # somebody who went away in the middle
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
