#!/usr/bin/env python3
"""Cold start of a server: seconds from its start to the first token of a streamed completion over HTTP, and its phases.

  bench/coldstart.py SYSTOLE MODEL
      --options "--weights int8"    more options of `systole serve`
      --packed int4    in turns with the folder that `systole quantize --weights int4` makes of MODEL
      --peer-command "llama-server -m model.gguf --port {port}"    in turns with it, and the ratio
      --rounds 5 --prompt "All human beings" --within 0.05

Every start is of a new process. It is measured with the files in the page cache (a start that does not count comes
first), and with them dropped: the model's, the program's, and all others that the command names. What the server reads
from the disk until then tells whether they were; where it is nothing, this is said. A client on the same machine
connects every 2 ms until it is answered. Figures are medians; the phases are those of the median start. Ends with 1 if
phases do not sum to their total, or if the total is off from what the client saw (the first connection) by more than
--within and 20 ms: the kernel tells the start of a process in hundredths of a second, and the client looks in turns with
the server. The standard library of Python is all that it needs.
"""
import argparse
import functools
import http.client
import json
import operator
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LONGEST_S = 600
SLACK_S = 0.02


def files_of(words):
    """The files that a command names, and those in the folders that it names."""
    found = [shutil.which(words[0]) or words[0]]
    for word in words[1:]:
        word = word.split("=", 1)[-1]
        if os.path.isfile(word):
            found.append(word)
        for folder, _, names in os.walk(word):
            found += [os.path.join(folder, name) for name in names]
    return found


def drop(files):
    os.sync()  # only what is written can be dropped
    for path in files:
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def bytes_read(process):
    """From the disk; None: the kernel does not tell."""
    try:
        with open(f"/proc/{process}/io") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("read_bytes"))
    except (OSError, StopIteration):
        return None


def first_piece(connection, prompt):
    """Whether a streamed completion has its first piece; False: the server is not ready."""
    body = json.dumps({"model": "coldstart", "prompt": prompt, "max_tokens": 1, "temperature": 0, "ignore_eos": True,
                       "stream": True})
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    if reply.status == 503:
        return False
    if reply.status != 200:
        raise RuntimeError(f"status {reply.status}: {reply.read(300).decode(errors='replace')}")
    while line := reply.readline():
        if line.startswith(b"data: {") and json.loads(line[6:]).get("choices"):
            return True
    raise RuntimeError("an answer without a token")


class Start:
    """One start: `connected` and `first` in seconds, `read` in bytes, and what the server says of itself."""

    def __init__(self, command, prompt):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = shlex.split(command.replace("{port}", str(port)))
        self.connected = self.first = None
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.monotonic()
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            try:
                self.wait(process, port, prompt, began)
                self.read = bytes_read(process.pid)
            except (RuntimeError, ValueError, http.client.HTTPException) as failure:
                err.seek(0)
                sys.exit(f"{command}: {failure}\n{err.read().decode(errors='replace')[-2000:]}")
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            out.seek(0)
            self.said = out.read()

    def wait(self, process, port, prompt, began):
        while self.first is None:
            if process.poll() is not None:
                raise RuntimeError(f"ended with {process.returncode}")
            if time.monotonic() > began + LONGEST_S:
                raise RuntimeError(f"no token within {LONGEST_S} s")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_S)
            try:
                connection.connect()
                self.connected = self.connected or time.monotonic() - began
                if first_piece(connection, prompt):
                    self.first = time.monotonic() - began
                    return
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(0.002)


def median(starts):
    return sorted(starts, key=lambda start: start.first)[len(starts) // 2]


def check_phases(start, within):
    """Prints the phases; whether they sum to their total, and the total is what the client saw."""
    phases = json.loads(start.said)["start"]
    total = phases.pop("total_s")
    off = total - start.connected
    parts = ", ".join(f"{name.removesuffix('_s')} {1e3 * seconds:,.0f}" for name, seconds in phases.items())
    print(f"  phases, ms: {parts}: {1e3 * total:,.0f} until it listens, {1e3 * off:+,.0f} beside the client's; "
          f"first token {1e3 * (start.first - start.connected):,.0f}")
    added = functools.reduce(operator.add, phases.values())  # `sum` rounds otherwise
    if added != total:
        print(f"  phases sum to {added} s, not {total} s")
        return False
    if abs(off) > max(within * start.connected, SLACK_S):
        print(f"  the client saw {start.connected:.3f} s until it listened")
        return False
    return True


def report(state, starts, within):
    well = True
    for name, all_of_it in starts.items():
        middle = median(all_of_it)
        read = "" if middle.read is None else f", {middle.read / 1e6:,.0f} MB read from the disk"
        print(f"{state}: {name}: first token after {middle.first:.3f} s "
              f"({min(s.first for s in all_of_it):.3f} to {max(s.first for s in all_of_it):.3f}){read}", flush=True)
        if name != "peer":
            well = check_phases(middle, within) and well
    for name in starts:
        if name != "peer" and "peer" in starts:
            print(f"{state}: {name}: {median(starts[name]).first / median(starts['peer']).first:.2f} × the peer's")
    return well


def packed_folder(systole, model, weights, into):
    """Starts of it make nothing of the weights; how long the making takes is printed."""
    folder = os.path.join(into, "packed")
    began = time.monotonic()
    made = subprocess.run([systole, "quantize", model, "--out", folder, "--weights", weights, "--limit", "100"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if made.returncode != 0:
        sys.exit(f"systole quantize: {made.stderr.decode(errors='replace')[-2000:]}")
    print(f"systole quantize: packed in {weights} in {time.monotonic() - began:.1f} s, with its error measured")
    return folder


def measure(options, made):
    def served(model, others):
        own = shlex.join([options.systole, "serve", model, "--json", "--name", "coldstart"])
        return f"{own} --port {{port}} {others}"

    commands = {"systole": served(options.model, options.options)}
    if options.packed:
        commands["packed"] = served(packed_folder(options.systole, options.model, options.packed, made), "")
    if options.peer_command:
        commands["peer"] = options.peer_command
    files = [path for command in commands.values() for path in files_of(shlex.split(command))]
    for command in commands.values():
        Start(command, options.prompt)
    well = True
    for state in ("files in memory", "files on the disk"):
        starts = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                if state == "files on the disk":
                    drop(files)
                starts[name].append(Start(command, options.prompt))
        well = report(state, starts, options.within) and well
    if any(not start.read for start in starts["systole"]):
        print("files on the disk: nothing was read from it as far as the kernel tells, so this is not known to be cold")
    return well


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("systole")
    parser.add_argument("model")
    parser.add_argument("--options", default="")
    parser.add_argument("--packed", choices=["int8", "int4"])
    parser.add_argument("--peer-command")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", default="All human beings")
    parser.add_argument("--within", type=float, default=0.05)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        sys.exit(0 if measure(options, made) else 1)


if __name__ == "__main__":
    main()
