#!/usr/bin/env python3
"""Tests of extract.py on entries made up here in the dictionary's markup."""

import gzip
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import extract  # noqa: E402

ENTRY = """Wobblet \\Wob"blet\\ (w[o^]b"bl[e^]t), n. [OF. wobl['e]e, fr. L. wob[ae]a a
   shaking; cf. [root]41. See {Wobble}.] (Mech.)
   1. A part that shakes; a {sha"k*er}. [Obs.] --A. Smith.
      [1913 Webster]

            [He] mended the wobblet.              --Bp. Jones.
      [1913 Webster +PJC]

   Syn: Shaker; tremor.
"""


class Clean(unittest.TestCase):
    def test_an_entry_becomes_one_line_of_english(self):
        self.assertEqual(extract.clean(ENTRY),
                         "Wobblet, n. (Mech.) 1. A part that shakes; a shaker. --A. Smith. He mended the wobblet. "
                         "--Bp. Jones. Syn: Shaker; tremor.")

    def test_letters_are_letters(self):
        self.assertEqual(extract.clean("Caf['e] \\Caf['e]\\, n.\n   An [ae]gis of 90[deg] in fa[,c]ade form."),
                         "Café, n. An ægis of 90° in façade form.")

    def test_a_spelled_plural_goes(self):
        self.assertEqual(extract.clean('Ox \\Ox\\, n.; pl. {Oxen} ([o^]ks"[e^]n).\n   A beast ("strong") of burden.'),
                         'Ox, n.; pl. Oxen. A beast ("strong") of burden.')

    def test_a_bare_headword_is_no_document(self):
        self.assertEqual(extract.clean("Wobblet \\Wob\"blet\\, n.\n   [1913 Webster]"), "")


class Split(unittest.TestCase):
    def test_by_content_and_without_duplicates(self):
        raw = [f"Word{i} \\Word\\, n.\n   The word of number {i}.\n" for i in range(2000)]
        train, held_out = extract.split(raw + raw, 0.05)
        self.assertEqual(len(train) + len(held_out), 2000)
        self.assertFalse(set(train) & set(held_out))
        self.assertTrue(60 <= len(held_out) <= 140, len(held_out))
        again = extract.split(raw[::-1], 0.05)
        self.assertEqual(sorted(held_out), sorted(again[1]))


def number(value):
    digits = {v: k for k, v in extract.DIGITS.items()}
    text = ""
    while value or not text:
        text, value = digits[value % 64] + text, value // 64
    return text


class Files(unittest.TestCase):
    def test_the_whole_way(self):
        note = b"00-database-info\n   not a word of the dictionary\n"
        dictionary = note + ENTRY.encode()
        index = (f"00-database-info\tA\t{number(len(note))}\n"
                 f"wobblet\t{number(len(note))}\t{number(len(ENTRY))}\n"
                 f"wobblets\t{number(len(note))}\t{number(len(ENTRY))}\n")
        with tempfile.TemporaryDirectory() as folder:
            with gzip.open(os.path.join(folder, "d.dz"), "wb") as file:
                file.write(dictionary)
            with open(os.path.join(folder, "d.index"), "w", encoding="utf-8") as file:
                file.write(index)
            out = os.path.join(folder, "out")
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extract.py")
            subprocess.run([sys.executable, script, out, "--dict", os.path.join(folder, "d.dz"), "--index",
                            os.path.join(folder, "d.index"), "--held-out", "0", "--no-zst"],
                           check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(out, "train.txt"), encoding="utf-8") as file:
                self.assertEqual(file.read(), extract.clean(ENTRY) + "\n")
            self.assertEqual(os.path.getsize(os.path.join(out, "held_out.txt")), 0)


if __name__ == "__main__":
    unittest.main()
