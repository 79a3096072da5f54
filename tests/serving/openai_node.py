#!/usr/bin/env python3
"""OpenAI's client for Node against `systole serve`: routes, streams and errors, as openai_client.py asks them in full.

  tests/serving/openai_node.py PROGRAM PACKAGES

PACKAGES is the folder into which `npm ci` puts the client, pinned by tools/oracles/node/package-lock.json. Skipped where
there is no Node, or no registry.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import MODEL, report
from openai_client import ROOT, TOKEN, prepare, start

PINNED = ROOT / "tools/oracles/node"


def install(packages):
    """Why the client is not there; nothing: it is."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "no Node: apt-get install nodejs npm"
    pins = {name: (PINNED / name).read_text(encoding="utf-8") for name in ("package.json", "package-lock.json")}
    if all((packages / name).exists() and (packages / name).read_text(encoding="utf-8") == text
           for name, text in pins.items()) and (packages / "node_modules/openai").exists():
        return None
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    for name, text in pins.items():
        (packages / name).write_text(text, encoding="utf-8")
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=packages, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return None
    shutil.rmtree(packages, ignore_errors=True)
    if "EINTEGRITY" in done.stdout:
        raise RuntimeError(done.stdout)
    return "npm could not install the client: " + " ".join(done.stdout.split())[:300]


def main():
    program, packages = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    missing = install(packages)
    if missing:
        return report([], "OpenAINode", missing)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="systole-node-"))
    try:
        prepare(program, folder)
        with start(program, folder, "open") as server:
            with start(program, folder, "small", "small.out") as small:
                done = subprocess.run(["node", ROOT / "tests/serving/openai_node.mjs", packages, server.url, small.url, MODEL,
                                       TOKEN], text=True, check=False, stdout=subprocess.PIPE, timeout=300)
        results = [(r["name"], r["seconds"], r["problem"]) for r in map(json.loads, done.stdout.splitlines())]
        for name, code in (("node", done.returncode), ("the_servers_end_well", server.process.returncode
                                                        or small.process.returncode)):
            if code != 0:
                results.append((name, 0.0, f"exit code {code}"))
        return report(results, "OpenAINode")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
