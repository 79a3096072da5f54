"""The peer of generate_bench: decoding with a cache in transformers on PyTorch, 1 and 8 sequences.

  torch_generate.py FOLDER      FOLDER: a Hugging Face model
"""

import os
import statistics
import sys
import time

import torch
import transformers

PROMPT, STEPS = 512, 64


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
    for slots in (1, 8):
        with torch.inference_mode():
            cache = model(torch.full((slots, PROMPT), 5), use_cache=True).past_key_values
            steps = []
            for _ in range(STEPS):
                began = time.perf_counter()
                cache = model(torch.full((slots, 1), 7), past_key_values=cache, use_cache=True).past_key_values
                steps.append(time.perf_counter() - began)
        step = statistics.median(steps)
        print(f"PyTorch {torch.__version__}, {slots} sequences: {slots / step:.1f} tokens/s, {1e3 * step:.2f} ms a step")


if __name__ == "__main__":
    main()
