#!/usr/bin/env python3
"""`systole embed` and /v1/embeddings of a bert's folder, compared with the same model in plain Python (plain_bert.py).

  tests/serving/bert_vectors.py PROGRAM [BACKEND...]

The vectors agree within 1e-4 on each backend (without any: cpu and reference)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import plain_bert
from harness import Server

PROGRAM = None
BACKENDS = []
CLOSE = 1e-4

TEXTS = ["The word, a list.", "unaffable lowest LOWER", "", "Café 世界!", "nothing that it knows: xyz", "hello world",
         "a list of 123 and lists " * 4, "\tthe   end-", "Ca\u0301fe\u0301 \u200bgo\u00ading", "the\u3000world? [SEP]"]


def systole(folder, *arguments, code=0):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_COLOR": "1", "HOME": str(folder)})
    if done.returncode != code:
        raise AssertionError(f"{' '.join(arguments)} ends with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


class BertVectors(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="systole-bert-")
        self.folder = pathlib.Path(self.place.name)
        (self.folder / "texts.txt").write_text("".join(text + "\n" for text in TEXTS), encoding="utf-8")
        self.tensors = plain_bert.weights()

    def tearDown(self):
        self.place.cleanup()

    def embedded(self, *more, backend=None):
        systole(self.folder, "embed", "model", "--in", "texts.txt", "--out", "out.jsonl", "--backend",
                backend or BACKENDS[0], *more)
        lines = [json.loads(line) for line in (self.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual([line["index"] for line in lines], list(range(len(TEXTS))))
        return [line["embedding"] for line in lines]

    def expect(self, vectors, **how):
        self.assertEqual(len(vectors), len(TEXTS))
        for text, vector in zip(TEXTS, vectors):
            expected = plain_bert.vector_of(text, self.tensors, **how)
            self.assertEqual(len(vector), len(expected))
            worst = max(abs(a - b) for a, b in zip(vector, expected))
            self.assertLess(worst, CLOSE, text)

    def test_a_folder_of_sentence_transformers(self):
        plain_bert.write_folder(self.folder / "model", pooling="mean")
        for backend in BACKENDS:
            self.expect(self.embedded(backend=backend))
        self.expect(self.embedded("--unnormalized"), normalize=False)
        self.expect(self.embedded("--dimensions", "5"), dimensions=5)
        self.expect(self.embedded("--pooling", "cls"), pooling="cls")

    def test_a_folder_of_the_first_conversions_with_heads(self):
        plain_bert.write_folder(self.folder / "model", prefix="bert.", old_norms=True, heads=True)
        self.expect(self.embedded("--pooling", "last"), pooling="last")
        said = systole(self.folder, "embed", "model", "--in", "texts.txt", "--out", "none.jsonl", code=2).stderr
        self.assertIn("--pooling", said)
        self.assertFalse((self.folder / "none.jsonl").exists())

    def test_texts_that_do_not_fit(self):
        plain_bert.write_folder(self.folder / "model", pooling="mean")
        (self.folder / "long.txt").write_text("the\n" + "the " * 60 + "\n", encoding="utf-8")
        said = systole(self.folder, "embed", "model", "--in", "long.txt", "--out", "out.jsonl", code=2).stderr
        self.assertIn("line 2 has 62 tokens", said)
        self.assertIn("--truncate", said)
        self.assertEqual(list(self.folder.glob("out.jsonl*")), [])
        systole(self.folder, "embed", "model", "--in", "long.txt", "--out", "out.jsonl", "--truncate")
        cut = json.loads((self.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()[1])["embedding"]
        expected = plain_bert.vector_of("the " * 38, self.tensors)
        self.assertLess(max(abs(a - b) for a, b in zip(cut, expected)), CLOSE)

    def test_what_is_no_file_is_not_replaced(self):
        plain_bert.write_folder(self.folder / "model", pooling="mean")
        os.mkfifo(self.folder / "pipe")
        said = systole(self.folder, "embed", "model", "--in", "texts.txt", "--out", "pipe", code=2).stderr
        self.assertIn("'pipe' is there, and no file to replace", said)
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_a_server_of_vectors_alone(self):
        plain_bert.write_folder(self.folder / "model", pooling="mean")
        with Server(PROGRAM, self.folder, "model", backend=BACKENDS[0]) as server:
            def ask(path, body):
                status, _, reply = server.raw("POST", path, json.dumps(body))
                return status, json.loads(reply)
            status, answer = ask("/v1/embeddings", {"model": "model", "input": TEXTS})
            self.assertEqual(status, 200, answer)
            self.expect([item["embedding"] for item in answer["data"]])
            self.assertEqual(answer["usage"]["prompt_tokens"], sum(len(plain_bert.tokens_of(text)) for text in TEXTS))
            status, answer = ask("/v1/completions", {"model": "model", "prompt": "the"})
            self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))
            self.assertIn("vectors", answer["error"]["message"])
        self.assertEqual(server.process.returncode, 0)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    BACKENDS = sys.argv[2:] or ["cpu", "reference"]
    unittest.main(argv=sys.argv[:1])
