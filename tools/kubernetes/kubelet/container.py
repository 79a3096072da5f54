"""One container: a process in a root folder of its own, as its pod's user, whose output is kept line by line.

There are no images: the root is this machine's, seen through an overlay that what the container writes falls into, with
the pod's volumes and names over it. Processes, host name and mounts are namespaces of their own; the network is its
pod's own (network.py), or else this machine's loopback, on which each pod has an address.
"""
import datetime
import os
import signal
import subprocess
import threading

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# $1 is the container's folder, $2 its host name; MOUNTS has "ro|rw SOURCE TARGET" a line. Then the words to run.
ENTER = r"""
set -e
place=$1 root=$1/root
mkdir -p "$root" "$place/scratch"
mount -t tmpfs tmpfs "$place/scratch"
mkdir "$place/scratch/upper" "$place/scratch/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/scratch/upper,workdir=$place/scratch/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
while read -r how from to; do
  if [ -d "$from" ]; then mkdir -p "$root$to"; else mkdir -p "$(dirname "$root$to")" && touch "$root$to"; fi
  mount --rbind "$from" "$root$to"
  [ "$how" = rw ] || mount -o remount,bind,ro "$root$to"
done <"$place/mounts"
echo "$2" >/proc/sys/kernel/hostname
shift 2
exec chroot "$root" "$@"
"""


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Container:
    """`mounts`: (how, source, target) each. `network`: the path of its pod's own, if it has one. Ended: `code` is what it
    ended with, 128 and the signal's number if by one."""

    def __init__(self, spec, place, environment, mounts, security, host_name, network=None):
        self.spec, self.place, self.security = spec, place, security
        self.environment = {"PATH": DEFAULT_PATH, "HOSTNAME": host_name, **environment}
        self.log = f"{place}/log"
        self.code = self.finished = None
        os.makedirs(place, exist_ok=True)
        with open(f"{place}/mounts", "w", encoding="utf-8") as file:
            file.writelines(f"{how} {source} {target}\n" for how, source, target in mounts)
        words = spec.get("command", []) + spec.get("args", [])
        into = ["nsenter", f"--net={network}", "--"] if network else []
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *into,
             "unshare", "--mount", "--pid", "--uts", "--ipc", "--propagation", "private", "--fork", "--kill-child",
             "/bin/sh", "-c", ENTER, "enter", place, host_name,
             *as_user(security), "env", "-C", spec.get("workingDir", "/"), "--", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.started = now()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with open(self.log, "a", encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(f"{now()} {line.decode(errors='replace').rstrip()}\n")
                log.flush()

    def poll(self):
        """Its code once it has ended and all that it said is kept."""
        if self.code is None and self.process.poll() is not None:
            self.reader.join(5)
            self.finished = now()
            self.code = self.process.returncode if self.process.returncode >= 0 else 128 - self.process.returncode
        return self.code

    def children(self):
        """Its first process, on which its namespaces and root hang."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [int(child) for child in children.read().split()]

    def inside(self, words, tty):
        """The words that run others beside its own, and their environment. A terminal is the session's of the inside."""
        session = ["setsid", "--ctty", "--wait"] if tty else []
        spaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--root"]
        return ["nsenter", f"--target={self.children()[0]}", *spaces, "--", *session, *as_user(self.security),
                "env", "-C", self.spec.get("workingDir", "/"), "--", *words], self.environment

    def signal(self, number):
        """To its first process alone, as containers have it; the others end with that one."""
        if self.poll() is not None:
            return
        if number == signal.SIGKILL:
            self.process.kill()
            return
        for child in self.children():
            os.kill(child, number)

    def status(self):
        said = {"name": self.spec["name"], "image": self.spec["image"], "imageID": "", "restartCount": 0,
                "containerID": f"systole://{self.process.pid}", "ready": self.code is None, "started": self.code is None}
        if self.code is None:
            said["state"] = {"running": {"startedAt": self.started}}
        else:
            said["state"] = {"terminated": {"exitCode": self.code, "reason": "Error" if self.code else "Completed",
                                            "startedAt": self.started, "finishedAt": self.finished}}
        return said


def as_user(security):
    """The words that take a container's rights away, from the securityContexts of pod and container. A process that becomes
    another user no longer dies with its parent; so that is asked for again."""
    words = ["setpriv", "--pdeathsig", "KILL", "--inh-caps", "-all"]
    if "runAsUser" in security:
        user, group = security["runAsUser"], security.get("runAsGroup", 0)
        groups = [group, *security.get("supplementalGroups", []), *([security["fsGroup"]] if "fsGroup" in security else [])]
        words += ["--reuid", str(user), "--regid", str(group), "--groups", ",".join(map(str, groups))]
    if security.get("allowPrivilegeEscalation") is False:
        words.append("--no-new-privs")
    if "ALL" in security.get("capabilities", {}).get("drop", []):
        words += ["--bounding-set", "-all"]
    return words
