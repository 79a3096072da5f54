"""What a pod's containers see: the files of its volumes, and the values of its environment."""
import base64
import os
import re
import shutil

from api import Refused


class NotYet(Exception):
    """Something that the pod names is not there; it may come."""


class Volumes:
    """Of one pod: `get` asks the API server, `place` is the pod's own folder."""

    def __init__(self, api, pod, place):
        self.api, self.pod, self.place = api, pod, place
        self.group = pod["spec"].get("securityContext", {}).get("fsGroup")
        self.folders, self.read_only = {}, set()

    def make(self):
        for volume in self.pod["spec"].get("volumes", []):
            name = volume["name"]
            kind = next(key for key in volume if key != "name")
            source = volume[kind]
            if kind in ("configMap", "secret", "projected", "downwardAPI", "emptyDir"):
                folder = f"{self.place}/volumes/{name}"
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
                sources = source.get("sources", []) if kind == "projected" else [{kind: source}]
                if kind != "emptyDir":
                    self.read_only.add(name)
                    for one in sources:
                        self._write(folder, one, source.get("defaultMode", 0o644))
            elif kind == "hostPath":
                folder = source["path"]
                if source.get("type") == "DirectoryOrCreate":
                    os.makedirs(folder, exist_ok=True)
            elif kind == "persistentVolumeClaim":
                folder = self._claimed(source["claimName"])
            else:
                raise NotYet(f"volume {name}: this kubelet has no {kind}")
            self._give_to_group(folder)
            self.folders[name] = folder

    def _claimed(self, claim):
        bound = self.get("persistentvolumeclaims", claim)
        if bound["status"]["phase"] != "Bound":
            raise NotYet(f"claim {claim} is not bound")
        volume = self.api.call("GET", "/api/v1/persistentvolumes/" + bound["spec"]["volumeName"])
        folder = volume["spec"]["hostPath"]["path"]
        os.makedirs(folder, exist_ok=True)
        return folder

    def _write(self, folder, source, mode):
        (kind, what), = source.items()
        if kind == "serviceAccountToken":
            account = self.pod["spec"].get("serviceAccountName", "default")
            path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/serviceaccounts/{account}/token"
            token = self.api.call("POST", path, {"spec": {"expirationSeconds": what.get("expirationSeconds", 3600)}})
            files = {what["path"]: token["status"]["token"].encode()}
        elif kind == "downwardAPI":
            files = {item["path"]: self.field(item["fieldRef"]["fieldPath"]).encode() for item in what["items"]}
        else:
            data = self.data(kind, what.get("secretName", what.get("name")), what.get("optional", False))
            items = what.get("items") or [{"key": key, "path": key} for key in data]
            missing = [item["key"] for item in items if item["key"] not in data]
            if missing and not what.get("optional"):
                raise NotYet(f"{kind} has no key {missing[0]}")
            files = {item["path"]: data[item["key"]] for item in items if item["key"] in data}
        for path, content in files.items():
            os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
            with open(f"{folder}/{path}", "wb") as file:
                file.write(content)
            os.chmod(f"{folder}/{path}", mode)

    def _give_to_group(self, folder):
        if self.group is None:
            return
        for top, folders, files in os.walk(folder):
            for path in [top] + [f"{top}/{name}" for name in files]:
                os.chown(path, -1, self.group)
                mode = os.stat(path).st_mode
                os.chmod(path, mode | (0o2070 if os.path.isdir(path) else (mode & 0o700) >> 3))

    def get(self, kind, name):
        try:
            return self.api.call("GET", f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/{kind}/{name}")
        except Refused as refused:
            if refused.code == 404:
                raise NotYet(f'{kind} "{name}" not found') from refused
            raise

    def data(self, kind, name, optional=False):
        """The bytes by key of a configMap or secret."""
        try:
            found = self.get("secrets" if kind.startswith("secret") else "configmaps", name)
        except NotYet:
            if optional:
                return {}
            raise
        if kind.startswith("secret"):
            return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
        return {**{key: value.encode() for key, value in found.get("data", {}).items()},
                **{key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()}}

    def field(self, path):
        """What a fieldRef says of the pod."""
        meta, status = self.pod["metadata"], self.pod["status"]
        keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        if keyed:
            return meta.get(keyed[1], {}).get(keyed[2], "")
        return {"metadata.name": meta["name"], "metadata.namespace": meta["namespace"], "metadata.uid": meta["uid"],
                "spec.nodeName": self.pod["spec"]["nodeName"],
                "spec.serviceAccountName": self.pod["spec"].get("serviceAccountName", "default"),
                "status.podIP": status["podIP"], "status.hostIP": status["hostIP"]}[path]

    def environment(self, container):
        values = {}
        for source in container.get("envFrom", []):
            (kind, what), = ((k, v) for k, v in source.items() if k != "prefix")
            for key, value in self.data(kind, what["name"], what.get("optional", False)).items():
                values[source.get("prefix", "") + key] = value.decode()
        for entry in container.get("env", []):
            came_from = entry.get("valueFrom")
            if not came_from:
                values[entry["name"]] = expanded(entry.get("value", ""), values)
                continue
            (kind, what), = came_from.items()
            if kind == "fieldRef":
                values[entry["name"]] = self.field(what["fieldPath"])
            elif kind in ("secretKeyRef", "configMapKeyRef"):
                data = self.data(kind, what["name"], what.get("optional", False))
                if what["key"] in data:
                    values[entry["name"]] = data[what["key"]].decode()
                elif not what.get("optional"):
                    raise NotYet(f"{kind} {what['name']} has no key {what['key']}")
            else:
                raise NotYet(f"environment {entry['name']}: this kubelet has no {kind}")
        return values


def expanded(text, values):
    """$(NAME) of what is known, as Kubernetes does it: $$(NAME) is the text, and so is what is not known."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda m: "$" if m[0] == "$$" else values.get(m[1], m[0]), text)
