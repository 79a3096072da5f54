"""Nodes of a cluster and the pods on them."""
import threading
import time

import server
from api import MERGE, Api, Refused
from container import now
from pod import Pod


class Kubelet:
    """`nodes`: names. `binds`: (how, source, target) that every container sees beside its volumes. `own_ports`: each pod
    has a network of its own."""

    def __init__(self, cluster, folder, nodes, labels, capacity, binds, own_ports):
        self.api, self.folder, self.nodes, self.binds = Api(cluster), folder, nodes, binds
        self.labels, self.capacity, self.own_ports = labels, capacity, own_ports
        self.pods, self.lock = {}, threading.Lock()
        self.stale = threading.Event()          # names may have changed
        self.services = {}
        self.everywhere = {}                    # pods of all nodes, by uid: others' names count, too
        self.addresses = 0
        self.port = server.serve(cluster, lambda: list(self.pods.values()))

    def run(self):
        for node in self.nodes:
            self._register(node)
        for work in (self._beat, self._watch_pods, self._watch_services, self._keep_names):
            threading.Thread(target=work, daemon=True).start()

    def end(self):
        """What runs is killed; the cluster learns nothing, as when machines die."""
        pods = list(self.pods.values())
        for pod in pods:
            pod.kill()
        for pod in pods:
            pod.join(5)

    # Nodes.

    def _register(self, node):
        labels = {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **self.labels}
        thing = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}, "status": self._node_status()}
        try:
            self.api.call("POST", "/api/v1/nodes", thing)
        except Refused as refused:
            if refused.code != 409:  # one of this name is there: it is this one's from now on
                raise
            self.api.call("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}}, MERGE)
        self._say_ready(node)

    def _node_status(self):
        capacity = {"pods": "110", **self.capacity}
        return {"capacity": capacity, "allocatable": capacity, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(),
                                "lastTransitionTime": now()}]}

    def _say_ready(self, node):
        self.api.call("PATCH", f"/api/v1/nodes/{node}/status", {"status": self._node_status()}, MERGE)
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node},
                 "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now()}}
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        try:
            self.api.call("PATCH", f"{leases}/{node}", lease, MERGE)
        except Refused as refused:
            if refused.code != 404:
                raise
            self.api.call("POST", leases, lease)

    def _beat(self):
        while True:
            time.sleep(5)
            for node in self.nodes:
                try:
                    self._say_ready(node)
                except Refused:  # it was deleted; a kubelet comes back only when it is started again
                    pass

    # Pods.

    def _watch_pods(self):
        for change, thing in self.api.watch("/api/v1/pods"):
            if change == "LIST":
                there = {pod["metadata"]["uid"]: pod for pod in thing}
                for uid in set(self.everywhere) - set(there):
                    self._see("DELETED", self.everywhere[uid])
                for pod in there.values():
                    self._see("MODIFIED", pod)
            else:
                self._see(change, thing)

    def _see(self, change, thing):
        uid = thing["metadata"]["uid"]
        if change == "DELETED":
            self.everywhere.pop(uid, None)
        else:
            self.everywhere[uid] = thing
        self.stale.set()
        if thing["spec"].get("nodeName") not in self.nodes:
            return
        with self.lock:
            pod = self.pods.get(uid)
            if change == "DELETED":
                if pod:
                    pod.kill()
            elif pod:
                pod.see(thing)
            elif thing["status"]["phase"] not in ("Succeeded", "Failed"):
                self.addresses += 1
                # Clusters side by side have different ports, so their pods have different addresses.
                address = f"127.1.{self.api.port // 20 % 250}.{self.addresses % 250 + 1}"
                self.pods[uid] = Pod(self, thing, address)
                self.pods[uid].start()

    def forget(self, pod):
        with self.lock:
            self.pods.pop(pod.thing["metadata"]["uid"], None)

    # Names: what a cluster's DNS says of headless Services, in each pod's /etc/hosts.

    def _watch_services(self):
        for change, thing in self.api.watch("/api/v1/services"):
            if change == "LIST":
                self.services = {service["metadata"]["uid"]: service for service in thing}
            elif change == "DELETED":
                self.services.pop(thing["metadata"]["uid"], None)
            else:
                self.services[thing["metadata"]["uid"]] = thing
            self.stale.set()

    def names_changed(self):
        self.stale.set()

    def _keep_names(self):
        while True:
            self.stale.wait()
            self.stale.clear()
            for pod in list(self.pods.values()):
                pod.write_hosts(self._names_for(pod))
            time.sleep(0.02)

    def _names_for(self, pod):
        """Lines of "ADDRESS NAME..." that a pod of this namespace sees."""
        space = pod.thing["metadata"]["namespace"]
        lines = ["127.0.0.1 localhost", f"{pod.address} {pod.host_name}"]
        for service in list(self.services.values()):
            meta, spec = service["metadata"], service["spec"]
            if meta["namespace"] != space or spec.get("clusterIP") != "None" or not spec.get("selector"):
                continue
            for other in list(self.everywhere.values()):
                address = self._address_behind(other, space, spec)
                if address:
                    host, name = other["spec"].get("hostname"), meta["name"]
                    hosts = [name] + ([f"{host}.{name}"] if host and other["spec"].get("subdomain") == name else [])
                    full = [f"{h}{rest}" for h in hosts for rest in ("", f".{space}", f".{space}.svc", f".{space}.svc.cluster.local")]
                    lines.append(f"{address} {' '.join(full)}")
        return lines

    def _address_behind(self, other, space, spec):
        meta, status = other["metadata"], other["status"]
        ours = self.pods.get(meta["uid"])
        address = ours.address if ours else status.get("podIP")
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
        selected = meta["namespace"] == space and spec["selector"].items() <= meta.get("labels", {}).items()
        ended = status["phase"] in ("Succeeded", "Failed")
        return address if selected and not ended and (ready or spec.get("publishNotReadyAddresses")) else None
