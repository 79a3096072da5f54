#!/usr/bin/env python3
"""Engines beside llama.cpp: tokens a second of a prompt of 512, and of 1, 8, 16 and 32 sequences, in turns.

  bench/serve_compare.py BUILD_FOLDER MODEL.gguf LLAMA_BATCHED_BENCH
      --weights int8,int4     how Systole keeps the matrices
      --threads 2 --rounds 3
      --cases 1:512+1,1:128+128,...     sequences:prompt+answer

Both sides run on the same processors with as many threads, from the same file, and compute what they say: no prompt is
shared, logits are made of every token of an answer. llama.cpp keeps keys and values in 16 bits, Systole in f32. Each
round asks every side once, each in a process of its own. Figures are medians of the rounds; a ratio is Systole's
beside llama.cpp's, and its spread that of the rounds. The standard library of Python is all that it needs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


PASSIVE = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}  # as the program sets them (operate/cli/main.cc)


def lines_of(words, threads):
    cores = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(words, env=os.environ | PASSIVE, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def systole(build, model, weights, cases, threads):
    return lines_of([os.path.join(build, "bench/generate_bench"), model, weights, *cases], threads)


def llama(program, model, cases, threads):
    found = []
    for case in cases:
        sequences, prompt, answer = numbers(case)
        words = [program, "-m", model, "-t", str(threads), "-tb", str(threads), "--output-format", "jsonl", "-npp", str(prompt),
                 "-ntg", str(answer), "-npl", str(sequences), "-c", str(sequences * (prompt + answer) + 64)]
        line = lines_of(words, threads)[0]
        found.append({"prefill": line["speed_pp"], "decode": line["speed_tg"]})
    return found


def numbers(case):
    sequences, lengths = case.split(":")
    prompt, answer = lengths.split("+")
    return int(sequences), int(prompt), int(answer)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("model")
    parser.add_argument("llama")
    parser.add_argument("--weights", default="int8,int4")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="1:512+1,1:128+128,8:128+128,16:128+128,32:128+128,32:512+32")
    options = parser.parse_args()
    cases = options.cases.split(",")
    sides = ["llama.cpp", *options.weights.split(",")]
    found = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side in sides:
            found[side].append(llama(options.llama, options.model, cases, options.threads) if side == "llama.cpp" else
                               systole(options.build, options.model, side, cases, options.threads))
    print(f"{os.path.basename(options.model)}, {options.threads} threads, tokens/s, medians of {options.rounds}")
    for number, case in enumerate(cases):
        sequences, prompt, answer = numbers(case)
        for what in ["prefill"] * (prompt >= 512) + ["decode"] * (answer > 1):
            peer = [rounds[number][what] for rounds in found["llama.cpp"]]
            line = f"{sequences:3d} × {prompt}+{answer} {what:8s} llama.cpp {statistics.median(peer):8,.0f}"
            for side in sides[1:]:
                own = [rounds[number][what] for rounds in found[side]]
                ratios = [a / b for a, b in zip(own, peer)]
                line += (f"   {side} {statistics.median(own):8,.0f}, {statistics.median(ratios):.2f} × "
                         f"({min(ratios):.2f}–{max(ratios):.2f})")
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
