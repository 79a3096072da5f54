"""What tools/xla-matrix and tools/xla-published share: asking `systole prove` of a row, and writing rows down."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def prove(systole, words, limit):
    """The proof as JSON; raises RuntimeError with the last line of what was said instead. One compiler runs at a time,
    and is ended above 4 GiB."""
    command = [systole, "prove", *words, "--json", "--max-memory", "4GiB", "--timeout", f"{limit}s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise RuntimeError(" ".join(done.stderr.split())[-300:])
    proof = json.loads(done.stdout)
    proof["said"] = " ".join(done.stderr.split())[-300:]
    return proof


def write(path, text):
    """Whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.replace(path + ".new", path)
