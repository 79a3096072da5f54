"""The API server, as a kubelet speaks to it: JSON over HTTPS with a certificate, and watches that go on."""
import http.client
import json
import ssl
import time
from contextlib import closing

MERGE = "application/strategic-merge-patch+json"


class Refused(Exception):
    """The server answered, and it is no."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class Api:
    """Of the cluster in `folder` (tools/kube up). Any thread may call."""

    def __init__(self, folder):
        with open(f"{folder}/kubeconfig", encoding="utf-8") as config:
            server = next(line.split("https://")[1].strip() for line in config if " server: " in line)
        self.host, self.port = server.split(":")[0], int(server.split(":")[1])
        self.context = ssl.create_default_context(cafile=f"{folder}/pki/ca.crt")
        self.context.load_cert_chain(f"{folder}/pki/admin.crt", f"{folder}/pki/admin.key")

    def _ask(self, method, path, body, kind, timeout):
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind} if kind else {})
        answer = connection.getresponse()
        if answer.status >= 400:
            text = answer.read().decode()
            connection.close()
            raise Refused(answer.status, text)
        return connection, answer

    def call(self, method, path, body=None, kind="application/json"):
        """What it answers. Goes on asking while no server is there or it says to come again."""
        while True:
            try:
                connection, answer = self._ask(method, path, body, kind, 10)
                with closing(connection):
                    return json.load(answer)
            except Refused as refused:
                if refused.code not in (429, 500, 503):
                    raise
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.2)

    def watch(self, path):
        """(LIST, objects) first and whenever changes may have been missed, else (ADDED | MODIFIED | DELETED, object)."""
        while True:
            listed = self.call("GET", path)
            yield "LIST", listed["items"]
            since = listed["metadata"]["resourceVersion"]
            while since:
                for change, thing in self._changes(path, since):
                    if change == "ERROR":  # too old
                        since = None
                        break
                    since = thing["metadata"]["resourceVersion"]
                    if change != "BOOKMARK":
                        yield change, thing

    def _changes(self, path, since):
        """Until the connection ends, as it does every few minutes."""
        try:
            connection, answer = self._ask(
                "GET", f"{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={since}", None, None, 320)
            with closing(connection):
                for line in answer:
                    change = json.loads(line)
                    yield change["type"], change["object"]
        except Refused as refused:
            if refused.code == 410:
                yield "ERROR", {}
            time.sleep(0.2)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.2)
