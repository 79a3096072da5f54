#!/usr/bin/env python3
"""Predicted beside measured steps of the examples on this machine, for each instruction set that it has.

  bench/predictions.py SYSTOLE [ISA...]      ISA: avx2, avx512, avx512-bf16, amx; without: all of them
                                             ROUNDS=5, MODELS="quickstart bert": how often, and which

Each round calibrates anew (--quick), before any run of it, into a folder of its own, and then runs each example for a
few steps. A figure is the median of the rounds: of what was predicted, of the median step, and of the error. Runs in the
project's folder, where build/gcide is (make quickstart makes it). Ends with 1 where a run failed.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = SourceFileLoader("quickstart_table", str(ROOT / "tools/quickstart-table")).load_module()
OWN = ("data_wait", "compute", "reduce", "update")  # a step's own work
ISAS = ["avx2", "avx512", "avx512-bf16", "amx"]
MODELS = {  # the words after `systole run examples/NAME.yaml`: a few steps of each
    "quickstart": ["--set", "train.time=5s"],
    "bert": ["--env", "glance"],
    "t5": ["--env", "glance"],
    "llama-50m": ["--env", "glance", "--set", "train.batch=2", "--set", "train.steps=6"],
    "gpt2-124m": ["--env", "glance", "--set", "train.batch=2", "--set", "train.microbatches=1", "--set",
                  "train.steps=5"],
}


def systole(words, home):
    ran = subprocess.run(words, cwd=ROOT, env=os.environ | {"XDG_CONFIG_HOME": home}, capture_output=True, text=True,
                         check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(words)}: {ran.returncode}\n{ran.stderr}")


def one_round(program, isa, models):
    """{model: (predicted, measured)}, in seconds of a step."""
    found = {}
    with tempfile.TemporaryDirectory() as home:
        systole([program, "-q", "calibrate", "--quick", "--no-disk", "--pin-isa", isa], home)
        for model in models:
            run = os.path.join(home, model)
            systole([program, "-q", "run", f"examples/{model}.yaml", "--folder", run, "--pin-isa", isa, *MODELS[model]],
                    home)
            with open(os.path.join(run, "plan.json"), encoding="utf-8") as file:
                plan = json.load(file)["time"]["step_s"]
            steps = [e for e in TABLE.events_of(run) if e["event"] == "step_ended"]
            found[model] = (sum(plan.get(c, 0) for c in OWN),
                            statistics.median(sum(s["seconds"].get(c, 0) for c in OWN) for s in steps[1:]))
            shutil.rmtree(run)
    return found


def main():
    program, asked = os.path.abspath(sys.argv[1]), sys.argv[2:]
    has = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    needs = {"avx512": "avx512f", "avx512-bf16": "avx512_bf16", "amx": "amx_bf16"}
    isas = asked or [isa for isa in ISAS if needs.get(isa, "avx2") in has]
    models = os.environ.get("MODELS", " ".join(MODELS)).split()
    print(f"{'':<14}{'':<14}{'predicted':>12}{'measured':>12}{'error':>9}   of each round")
    for isa in isas:
        rounds = [one_round(program, isa, models) for _ in range(int(os.environ.get("ROUNDS", "5")))]
        for model in models:
            errors = [100 * (r[model][0] / r[model][1] - 1) for r in rounds]
            predicted, measured = (1e3 * statistics.median(r[model][k] for r in rounds) for k in (0, 1))
            print(f"{isa:<14}{model:<14}{predicted:>9.1f} ms{measured:>9.1f} ms{statistics.median(errors):>+8.1f}%   "
                  + " ".join(f"{e:+.1f}" for e in errors), flush=True)


if __name__ == "__main__":
    main()
