"""One pod, from the moment its node has it to the moment its object may go."""
import os
import shutil
import signal
import threading
import time

from api import MERGE, Refused
from container import Container, now
from network import Network
from probes import Probes, check
from volumes import NotYet, Volumes, expanded


class Pod(threading.Thread):
    """A thread of its own; `see` is told of each change of its object, `kill` that it is gone."""

    def __init__(self, kubelet, thing, address):
        super().__init__(daemon=True)
        self.kubelet, self.api, self.thing, self.address = kubelet, kubelet.api, thing, address
        meta = thing["metadata"]
        self.path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self.place = f"{kubelet.folder}/pods/{meta['namespace']}_{meta['name']}_{meta['uid']}"
        self.hosts, self.host_name = f"{self.place}/hosts", thing["spec"].get("hostname", meta["name"])
        self.containers, self.restarts, self.probes = {}, {}, {}
        self.network = None                # its own, if pods have one
        self.gone = threading.Event()      # the object is no longer there, or the kubelet ends
        self.changed = threading.Event()
        self.told_to_end = None            # when, by the monotonic clock
        self.stopping = set()              # containers that were told
        self.ready = False

    # What others call.

    def see(self, thing):
        self.thing = {**thing, "status": {**thing["status"], **self._where()}}
        self.changed.set()

    def kill(self):
        self.gone.set()
        self.changed.set()

    def write_hosts(self, lines):
        """In place: containers have this very file."""
        if os.path.exists(self.hosts):
            with open(self.hosts, "r+", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
                file.truncate()

    # What it does.

    def run(self):
        try:
            os.makedirs(self.place)
            with open(self.hosts, "w", encoding="utf-8") as file:
                file.write("127.0.0.1 localhost\n")
            if self._prepare():
                self._report("Running")
                self.kubelet.names_changed()
                self._attend()
            self._end_all(signal.SIGKILL)
            self._report(self._phase())
            self._let_go()
        except Refused as refused:
            if refused.code != 404:  # the object went while it was reported
                raise
            self._end_all(signal.SIGKILL)
        finally:
            if self.network:
                self.network.close()
            self.kubelet.forget(self)

    def _where(self):
        return {"podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": "127.0.0.1",
                "hostIPs": [{"ip": "127.0.0.1"}]}

    def _deleted(self):
        return self.gone.is_set() or "deletionTimestamp" in self.thing["metadata"]

    def _prepare(self):
        """Volumes and containers, as soon as what they name is there. False: deleted before."""
        self.thing["status"].update(self._where())
        said = None
        while not self._deleted():
            try:
                volumes = Volumes(self.api, self.thing, self.place)
                volumes.make()
                first, rest = self.thing["spec"].get("initContainers", []), self.thing["spec"]["containers"]
                self._make_network(rest)
                starts = {spec["name"]: self._start_of(spec, volumes) for spec in first + rest}
                break
            except NotYet as reason:
                if str(reason) != said:
                    said = str(reason)
                    self._report("Pending", waiting=said)
                self.gone.wait(0.3)
        else:
            return False
        self.starts = starts
        self.kubelet.names_changed()
        for spec in first:
            self._start(spec["name"])
            if spec.get("restartPolicy") != "Always" and not self._wait_for(spec["name"]):
                return False
        for spec in rest:
            self._start(spec["name"])
        return True

    def _make_network(self, specs):
        if not self.kubelet.own_ports or self.network:
            return
        try:
            self.network = Network(self.address, [port["containerPort"] for spec in specs for port in spec.get("ports", [])])
        except OSError as failure:
            raise NotYet(f"network of {self.address}: {failure}") from failure

    def _wait_for(self, name):
        while self.containers[name].poll() is None and not self._deleted():
            time.sleep(0.02)
        return self.containers[name].poll() == 0

    def _start(self, name):
        self.containers[name] = self.starts[name]()
        self.probes[name] = Probes(self.containers[name], self.address)

    def _start_of(self, spec, volumes):
        """What starts this container, all that it names being there."""
        security = {**self.thing["spec"].get("securityContext", {}), **spec.get("securityContext", {})}
        if security.get("runAsNonRoot") and not security.get("runAsUser"):
            raise NotYet(f"container {spec['name']}: runAsNonRoot, and no runAsUser says who")
        check(spec)
        environment = volumes.environment(spec)
        mounts = [("ro" if m.get("readOnly") or m["name"] in volumes.read_only else "rw", os.path.join(volumes.folders[m["name"]], m.get("subPath", "")),
                   m["mountPath"]) for m in spec.get("volumeMounts", [])]
        mounts += [("rw", self.hosts, "/etc/hosts"), *self.kubelet.binds]
        words = {key: [expanded(word, environment) for word in spec.get(key, [])] for key in ("command", "args")}
        return lambda: Container({**spec, **words}, f"{self.place}/{spec['name']}", environment, mounts, security, self.host_name,
                                 self.network.path if self.network else None)

    def _attend(self):
        """Until all of them have ended for good."""
        policy = self.thing["spec"].get("restartPolicy", "Always")
        while True:
            self.changed.wait(0.05)
            self.changed.clear()
            if self.gone.is_set():
                return
            self._end_if_told()
            for spec in self.thing["spec"]["containers"]:
                code = self.containers[spec["name"]].poll()
                again = policy == "Always" or (policy == "OnFailure" and code != 0)
                if code is not None and again and not self._deleted():
                    self.restarts[spec["name"]] = self.restarts.get(spec["name"], 0) + 1
                    self._start(spec["name"])
                    self._report("Running")
                elif self.probes[spec["name"]].failed and not self._deleted():
                    self.containers[spec["name"]].signal(signal.SIGKILL)
            if self._is_ready() != self.ready:
                self._report("Running")
            if all(self.containers[spec["name"]].poll() is not None for spec in self.thing["spec"]["containers"]):
                return

    def _end_if_told(self):
        if not self._deleted():
            return
        if self.told_to_end is None:
            self.told_to_end = time.monotonic()
        waited = time.monotonic() - self.told_to_end
        for name, container in self.containers.items():
            before = container.spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            if name not in self.stopping and waited >= before:
                self.stopping.add(name)
                container.signal(signal.SIGTERM)
        if waited > self.thing["metadata"].get("deletionGracePeriodSeconds", 30):
            self._end_all(signal.SIGKILL)

    def _end_all(self, number):
        for container in self.containers.values():
            container.signal(number)
        for container in self.containers.values():
            while container.poll() is None:
                time.sleep(0.01)

    def _phase(self):
        codes = [self.containers[spec["name"]].code if spec["name"] in self.containers else 1
                 for spec in self.thing["spec"]["containers"]]
        return "Failed" if any(codes) else "Succeeded"

    def _let_go(self):
        """A deleted pod's object goes once its processes have."""
        while not self._deleted():
            self.changed.wait()
            self.changed.clear()
        if not self.gone.is_set():
            self.api.call("DELETE", self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.thing["metadata"]["uid"]}})
        shutil.rmtree(self.place, ignore_errors=True)

    # What it says of itself.

    def _is_ready(self):
        return all(self.probes[spec["name"]].ready for spec in self.thing["spec"]["containers"])

    def _report(self, phase, waiting=None):
        if self.gone.is_set():
            return
        self.ready = phase == "Running" and self._is_ready()
        status = {**self._where(), "phase": phase, "startTime": self.thing["status"].get("startTime", now())}
        status["conditions"] = [self._condition("Initialized", True), self._condition("ContainersReady", self.ready),
                                self._condition("Ready", self.ready)]
        status["containerStatuses"] = [self._status(spec, waiting) for spec in self.thing["spec"]["containers"]]
        inits = [self._status(spec, waiting) for spec in self.thing["spec"].get("initContainers", [])]
        if inits:
            status["initContainerStatuses"] = inits
        self.api.call("PATCH", self.path + "/status", {"status": status, "metadata": {"uid": self.thing["metadata"]["uid"]}}, MERGE)

    def _status(self, spec, waiting):
        container = self.containers.get(spec["name"])
        if container:
            status, probes = container.status(), self.probes[spec["name"]]
            return {**status, "restartCount": self.restarts.get(spec["name"], 0),
                    "ready": status["ready"] and probes.ready, "started": status["started"] and probes.started}
        return {"name": spec["name"], "image": spec["image"], "imageID": "", "ready": False, "restartCount": 0,
                "state": {"waiting": {"reason": "ContainerCreating", "message": waiting or ""}}}

    def _condition(self, kind, holds):
        return {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now()}
