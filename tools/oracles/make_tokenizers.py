#!/usr/bin/env python3
"""Writes the golden tokenizers of src/execute/data/golden and what `tokenizers` makes of texts in many scripts.

  tools/oracles/install small build/oracles/small
  PYTHONPATH=build/oracles/small python3 tools/oracles/make_tokenizers.py

Tiny vocabularies trained on scripts.txt, with the splits of GPT-2, of Llama 3 (and its ignore_merges) and of GPT-4o, and
GPT-2's once more as vocab.json and merges.txt. texts.json: {"texts": [...], "tokens": {tokenizer: [[...], ...]}}.
"""
import json
import os
import sys

import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "..", "src", "execute", "data", "golden")

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Two splits in a row, one of them a literal; an added token that is no special one.
TWO_STEPS = r"\p{N}{1,3}|[一-龥぀-ゟ゠-ヿ]+"


def byte_level(regex=None):
    if regex is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(texts, size, split, specials, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.encode_special_tokens = True  # as Systole: no text becomes a special token
    return tokenizer


def make(texts, size):
    """name → tokenizer."""
    made = {"gpt2": train(texts, size, byte_level(), ["<|endoftext|>"])}
    llama = train(texts, size, byte_level(LLAMA3), ["<|begin_of_text|>", "<|end_of_text|>"], ignore_merges=True)
    llama.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair=None,
                                                         special_tokens=[("<|begin_of_text|>", 0)])
    made["llama3"] = llama
    made["gpt4o"] = train(texts, size, byte_level(GPT4O), ["<|endoftext|>"])
    steps = train(texts, size, pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(TWO_STEPS), "isolated"), pre_tokenizers.Split("e.", "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]), ["</s>"])
    steps.add_tokens(["<tool>", "<tool>>", "   ", "rights"])
    made["steps"] = steps
    return made


def main():
    with open(os.path.join(GOLDEN, "scripts.txt"), encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    made = make(lines, 700)
    for name, tokenizer in made.items():
        tokenizer.save(os.path.join(GOLDEN, f"{name}.json"), pretty=False)
    pair = Tokenizer.from_file(os.path.join(GOLDEN, "gpt2.json"))
    os.makedirs(os.path.join(GOLDEN, "gpt2_pair"), exist_ok=True)
    pair.model.save(os.path.join(GOLDEN, "gpt2_pair"))
    texts = [*lines, "", " ", "  \n\n \t x\r\n\r\n", "a  b   c    ", "\u1680x\u180e y\u2003\u3000z\u0085\u00a0",
             "<|endoftext|> <|begin_of_text|></s><tool>><tool> rights", "x" * 200, " " * 300 + "end", "ab" * 100,
             "".join(chr(c) for c in range(0x20, 0x250)), "\n".join(reversed(lines))]
    tokens = {}
    for name, tokenizer in made.items():
        tokens[name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        for text, ids in zip(texts, tokens[name]):
            assert tokenizer.decode(ids, skip_special_tokens=True) == text, (name, text)
    with open(os.path.join(GOLDEN, "texts.json"), "w", encoding="utf-8") as file:
        json.dump({"tokenizers": tokenizers.__version__, "texts": texts, "tokens": tokens}, file, ensure_ascii=False,
                  separators=(",", ":"))
        file.write("\n")
    print(f"{len(texts)} texts, {len(made)} tokenizers, tokenizers {tokenizers.__version__}")


if __name__ == "__main__":
    sys.exit(main())
