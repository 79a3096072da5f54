#!/usr/bin/env python3
"""What Python's `tokenizers` makes of the texts in FOLDER/texts.bin: tokenizers_oracle.py FOLDER VOCABULARY

Trains a tokenizer of each kind of make_tokenizers.py on every eighth, of VOCABULARY tokens, and writes for each
  NAME.json     the tokenizer
  NAME.tokens   each text's tokens
  NAME.decoded  what each list of numbers in numbers.bin decodes to
Files hold items one after the other: a count (u32), then so many bytes, or u32 numbers. Prints a line a tokenizer:
its name and the seconds that encoding took on one thread, without offsets.
"""
import array
import os
import struct
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_tokenizers  # noqa: E402  (after the environment)


def items(path, size):
    """The items of a file, as bytes; each element takes `size` bytes."""
    with open(path, "rb") as file:
        while head := file.read(4):
            yield file.read(struct.unpack("<I", head)[0] * size)


def main():
    folder, vocabulary = sys.argv[1], int(sys.argv[2])
    texts = [item.decode() for item in items(os.path.join(folder, "texts.bin"), 1)]
    numbers = [array.array("I", item).tolist() for item in items(os.path.join(folder, "numbers.bin"), 4)]
    for name, tokenizer in make_tokenizers.make(texts[::8], vocabulary).items():
        tokenizer.save(os.path.join(folder, f"{name}.json"), pretty=False)
        began = time.perf_counter()
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        print(name, time.perf_counter() - began, flush=True)
        with open(os.path.join(folder, f"{name}.tokens"), "wb") as file:
            for text, one in zip(texts, encoded):
                file.write(struct.pack("<I", len(one.ids)) + array.array("I", one.ids).tobytes())
                if tokenizer.decode(one.ids, skip_special_tokens=True) != text:
                    sys.exit(f"{name}: tokenizers itself does not give back {text!r}")
        with open(os.path.join(folder, f"{name}.decoded"), "wb") as file:
            for one in numbers:
                text = tokenizer.decode([n % tokenizer.get_vocab_size() for n in one], skip_special_tokens=True).encode()
                file.write(struct.pack("<I", len(text)) + text)


main()
