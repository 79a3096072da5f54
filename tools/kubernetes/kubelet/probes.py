"""The probes of a container: httpGet alone."""
import http.client
import threading
import time

from volumes import NotYet

KINDS = ("startupProbe", "readinessProbe", "livenessProbe")


def check(spec):
    """Refuses what is not played."""
    for kind in KINDS:
        if kind in spec and spec[kind].get("httpGet", {}).get("scheme") != "HTTP":
            raise NotYet(f"container {spec['name']}: this kubelet asks {kind} over HTTP only")


class Probe:
    """`holds` and `failed` once enough answers in a row said so. The API server has filled in each default."""

    def __init__(self, spec, address, ports, holds):
        self.spec, self.holds, self.failed = spec, holds, False
        port = spec["httpGet"]["port"]
        self.address, self.port = address, ports.get(port, port)
        self.said, self.row = None, 0
        self.next = time.monotonic() + spec.get("initialDelaySeconds", 0)

    def play(self):
        """Asks, where it is time to."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.spec["periodSeconds"]
        said = self._ask()
        self.row = self.row + 1 if said == self.said else 1
        self.said = said
        if self.row >= self.spec["successThreshold" if said else "failureThreshold"]:
            self.holds, self.failed = said, not said

    def _ask(self):
        connection = http.client.HTTPConnection(self.address, self.port, timeout=self.spec["timeoutSeconds"])
        try:
            connection.request("GET", self.spec["httpGet"]["path"])
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class Probes:
    """Those of a container that has just started, played on a thread of their own until it ends."""

    def __init__(self, container, address):
        self.container = container
        spec = container.spec
        ports = {port["name"]: port["containerPort"] for port in spec.get("ports", []) if "name" in port}
        self.played = {kind: Probe(spec[kind], address, ports, kind == "livenessProbe") for kind in KINDS if kind in spec}
        if self.played:
            threading.Thread(target=self._play, daemon=True).start()

    @property
    def started(self):
        return "startupProbe" not in self.played or self.played["startupProbe"].holds

    @property
    def ready(self):
        return self.started and ("readinessProbe" not in self.played or self.played["readinessProbe"].holds)

    @property
    def failed(self):
        """The container is to be started again."""
        return any(self.played[kind].failed for kind in ("startupProbe", "livenessProbe") if kind in self.played)

    def _play(self):
        while self.container.code is None and not self.failed:
            for kind in ("readinessProbe", "livenessProbe") if self.started else ("startupProbe",):
                if kind in self.played:
                    self.played[kind].play()
            time.sleep(0.05)
