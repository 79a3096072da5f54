"""Systole beside Calculon (Isaev et al., SC23): the time of the same layouts of one training job, estimated by both.

Calculon's own search (bin/calculon llm-optimal-execution) is repeated: its layouts, its Llm class, as many processes as
Systole has threads. Those that Systole's Programs have no counterpart of are counted by reason and left out on both
sides. Then Systole's pick is given to Calculon's model, which says how much slower it holds it to be than its own pick;
and the other way round.

  bench/calculon.py BUILD_FOLDER CALCULON_FOLDER

CALCULON_FOLDER: a checkout of https://github.com/calculon-ai/calculon, which needs Debian's python3-psutil. Its README's
search of 5,128 GPUs breaks off rows of a microbatch where fewer fit nowhere (-m), which leaves 8,112 of the layouts.
"""

import collections
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time

PROCESSES = 2
GIB = 2**30
# As models/turing-530B.json; the vocabulary, which that leaves out, is of Smith et al., arXiv:2201.11990.
JOB = """systole: 1
name: turing-530b
model: {{ family: gpt, layers: 105, width: 20480, heads: 128, context: 2048, vocabulary: 51200 }}
data: {{ train: {{ files: none.txt }}, tokenizer: {{ vocabulary: 51200 }} }}
train: {{ batch: {batch}, steps: 1, optimizer: {{ rate: 1e-4 }}, precision: {{ compute: bf16, reduce: bf16 }} }}
"""
# name, GPUs, rows at most, whether memory is a limit. The first is the search of Calculon's README: without offloading,
# which no Program does, none of its layouts fits 80 GB, so that there only time is compared.
SEARCHES = [
    ("README: 5,128 GPUs, batch 2,520, memory set aside", 5128, 2520, False),
    ("4,480 GPUs, batch 2,240", 4480, 2240, True),
    ("2,240 GPUs, batch 1,920", 2240, 1920, True),
]
RECOMPUTE = {"none": "none", "attn_only": "attention", "full": "block"}


def load(folder):
    sys.path.insert(0, folder)
    from calculon.llm import Llm  # pylint: disable=import-outside-toplevel
    from calculon.llm.optimal_execution import OptimalExecution  # pylint: disable=import-outside-toplevel
    from calculon.system import System  # pylint: disable=import-outside-toplevel
    return Llm, OptimalExecution, System


def layouts_of(Llm, Search, app, gpus, rows, offloads, networks):
    """Every execution that Calculon's search goes through, as its options."""
    for tp in Llm.get_all_tensor_parallelisms(gpus, app.hidden, app.attn_heads):
        for pp in Llm.get_all_pipeline_parallelisms(gpus, tp, app.num_blocks):
            dp = Llm.get_data_parallelism(gpus, tp, pp)
            batch = Search.get_batch_size(dp, rows)
            if batch is None:
                continue
            for chunks in Llm.get_valid_pipeline_interleavings(app.num_blocks, pp):
                for options in options_of(Llm, tp, pp, dp, offloads, networks):
                    for each in Llm.get_valid_microbatch_sizes(app.seq_size, tp, dp, batch, pp):
                        yield {"num_procs": gpus, "tensor_par": tp, "pipeline_par": pp, "data_par": dp,
                               "batch_size": batch, "microbatch_size": each, "datatype": "float16",
                               "fused_activation": True, "attention_type": "multihead",
                               "pipeline_interleaving": chunks, "training": True} | options


def options_of(Llm, tp, pp, dp, offloads, networks):
    both = (True, False)
    for recompute in RECOMPUTE:
        for comm in ("ar", "p2p_rs_ag", "rs_ag"):
            for again in both if Llm.can_redo_ag(comm, recompute) else (False,):
                for sharded in both if dp > 1 else (False,):
                    for data_overlap in both if dp > 1 else (False,):
                        for overlap in ("none", "ring", "pipe") if tp > 1 else ("none",):
                            for weights in both if offloads else (False,):
                                for activations in both if offloads and recompute != "full" else (False,):
                                    for optimizer in both if offloads else (False,):
                                        for tn in range(networks) if tp > 1 else (0,):
                                            for pn in range(networks) if pp > 1 else (0,):
                                                for dn in range(networks) if dp > 1 else (0,):
                                                    yield {"activation_recompute": recompute,
                                                           "tensor_par_comm_type": comm, "seq_par_ag_redo": again,
                                                           "optimizer_sharding": sharded,
                                                           "data_par_overlap": data_overlap,
                                                           "tensor_par_overlap": overlap, "weight_offload": weights,
                                                           "activations_offload": activations,
                                                           "optimizer_offload": optimizer, "tensor_par_net": tn,
                                                           "pipeline_par_net": pn, "data_par_net": dn}


def without_counterpart(e):
    """Why no Program is laid out so; nothing where one is."""
    if e["weight_offload"] or e["activations_offload"] or e["optimizer_offload"]:
        return "something is offloaded to the host"
    if e["tensor_par_comm_type"] != "rs_ag":
        return "activations between blocks are whole on every rank of a tensor group"
    if e["seq_par_ag_redo"]:
        return "what is gathered is gathered again for backward"
    if e["tensor_par_overlap"] == "pipe":
        return "one overlap of tensor messages is known, not two"
    inside = e["tensor_par_net"] == 0 or e["tensor_par"] == 1
    outside = all(e[f"{axis}_par_net"] == 1 or e[f"{axis}_par"] == 1 for axis in ("pipeline", "data"))
    if not inside or not outside or e["tensor_par"] > 8:
        return "axes lie on other links"
    microbatches = e["batch_size"] // e["data_par"] // e["microbatch_size"]
    if e["pipeline_interleaving"] > 1 and microbatches % e["pipeline_par"]:
        return "chunks take turns only when stages divide the microbatches"
    return None


def line_of(e):
    microbatches = e["batch_size"] // e["data_par"] // e["microbatch_size"]
    hides = {(True, True): "both", (True, False): "tensor", (False, True): "data", (False, False): "none"}
    words = [e["pipeline_par"], e["data_par"], e["tensor_par"], int(e["optimizer_sharding"]), e["pipeline_interleaving"],
             microbatches, e["batch_size"], RECOMPUTE[e["activation_recompute"]],
             hides[e["tensor_par_overlap"] != "none", e["data_par_overlap"]]]
    return " ".join(map(str, words))


def estimate(work):
    """Rows a second of each layout, as Calculon's search computes them; nothing: refused."""
    folder, app, system, executions = work
    Llm, _, System = load(folder)
    app, system, log = Llm.Application(app), System(system), logging.Logger("calculon")
    rates = []
    for e in executions:
        try:
            model = Llm(app, log)
            model.compile(system, Llm.Execution.from_json(e))
            model.run(system)
            rates.append(model.get_stats_json(False)["sample_rate"])
        except Llm.Error:
            rates.append(None)
    return rates


def calculons(folder, app, system, executions):
    """Rates, and seconds that all took."""
    begin = time.monotonic()
    parts = [(folder, app, system, executions[i::PROCESSES]) for i in range(PROCESSES)]
    with multiprocessing.Pool(PROCESSES) as pool:
        answers = pool.map(estimate, parts)
    took = time.monotonic() - begin
    rates = [None] * len(executions)
    for i, part in enumerate(answers):
        rates[i::PROCESSES] = part
    return rates, took


def systoles(build, executions, rows):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as job:
        job.write(JOB.format(batch=rows))
        job.flush()
        done = subprocess.run([os.path.join(build, "bench", "layouts_bench"), job.name, "a100", "megatron-core"],
                              input="\n".join(map(line_of, executions)) + "\n", capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def words_of(e):
    overlap = "" if e["tensor_par_overlap"] == "none" else ", tensor overlapped"
    return (f'tensor {e["tensor_par"]}, pipeline {e["pipeline_par"]}x{e["pipeline_interleaving"]}, data {e["data_par"]}, '
            f'rows {e["microbatch_size"]}, recompute {e["activation_recompute"]}, '
            f'{"sharded" if e["optimizer_sharding"] else "whole"} optimizer{overlap}')


def best(numbers):
    return max((i for i, n in enumerate(numbers) if n is not None), key=lambda i: numbers[i], default=None)


def compare(build, folder, name, gpus, rows, limited):
    Llm, Search, System = load(folder)
    with open(os.path.join(folder, "models", "turing-530B.json"), encoding="utf-8") as file:
        app = json.load(file)
    with open(os.path.join(folder, "systems", "a100_80g.json"), encoding="utf-8") as file:
        system = json.load(file)
    own = System(system)
    every = list(layouts_of(Llm, Search, Llm.Application(app), gpus, rows, own.mem2.capacity > 0, own.num_networks))
    reasons = collections.Counter(map(without_counterpart, every))
    same = [e for e in every if without_counterpart(e) is None]
    print(f"== {name}\n{len(every)} layouts of Calculon's search; {len(same)} that both can have")
    for reason, count in reasons.most_common():
        if reason is not None:
            print(f"    {count:6} left out: {reason}")
    if not limited:
        system["mem1"]["GiB"] = 1 << 20
    ours = systoles(build, same, rows)
    theirs, took = calculons(folder, app, system, same)
    estimated = sum(s is not None for s in ours["seconds"])
    rate, cold, warm = len(same) / took, len(same) / ours["cold"], len(same) / ours["warm"]
    print(f"layouts a second on {PROCESSES} cores: Calculon {rate:,.0f}; Systole {warm:,.0f} ({warm / rate:,.0f} x), "
          f'{cold:,.0f} ({cold / rate:,.0f} x) with its {ours["programs"]} Programs\n'
          f"estimated: Systole {estimated}, Calculon {sum(r is not None for r in theirs)}")
    speeds = [None if s is None or (limited and gib > ours["usable_gib"]) else e["batch_size"] / s
              for e, s, gib in zip(same, ours["seconds"], ours["gib"])]
    mine, other = best(speeds), best(theirs)
    if mine is None or other is None:
        print("nothing fits for " + " and ".join(n for n, b in (("Systole", mine), ("Calculon", other)) if b is None))
        return
    print(f"Systole's pick   {words_of(same[mine])}\nCalculon's pick  {words_of(same[other])}")
    judged = "does not fit" if theirs[mine] is None else f"{theirs[mine] / theirs[other]:.3f} of its own pick's rows a second"
    print(f"by Calculon's model Systole's pick has {judged}")
    judged = "does not fit" if speeds[other] is None else f"{speeds[other] / speeds[mine]:.3f}"
    print(f"by Systole's Calculon's has {judged}")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    build, folder = (os.path.abspath(path) for path in sys.argv[1:])
    for search in SEARCHES:
        compare(build, folder, *search)


if __name__ == "__main__":
    main()
