#!/usr/bin/env python3
"""A tier stands on what its tests include, headers with their sources; a changed byte of it is another hash."""
import glob
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("tier", os.path.join(HERE, "..", "tools", "tier"))
tier = importlib.util.module_from_spec(importlib.util.spec_from_loader("tier", loader))
loader.exec_module(tier)


ROOT = os.path.dirname(HERE)


def tier_as_it_is():
    """The module anew, with the repository's own tiers."""
    fresh = importlib.util.module_from_spec(importlib.util.spec_from_loader("tier", loader))
    loader.exec_module(fresh)
    return fresh


class Tier(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        tier.ROOT = self.folder.name
        tier.RECORD = os.path.join(tier.ROOT, "tiers.txt")
        tier.TIERS = {"t": ["src/a_test.cc", "src/laws/*"]}
        for path, text in {"src/laws/a_test.cc": '#include "b.h"\n', "src/b.h": "", "src/b.cc": '#include "c.h"\n',
                           "src/c.h": "", "src/d.h": ""}.items():
            os.makedirs(os.path.dirname(os.path.join(tier.ROOT, path)), exist_ok=True)
            self.write(path, text)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        with open(os.path.join(tier.ROOT, path), "w", encoding="utf-8") as file:
            file.write(text)

    def test_stands_on_sources_of_what_it_includes(self):
        self.assertEqual(tier.files_of("t"), ["src/b.cc", "src/b.h", "src/c.h", "src/laws/a_test.cc"])

    def test_only_a_change_of_these_is_another_hash(self):
        before = tier.hash_of(tier.files_of("t"))
        self.write("src/d.h", "changed")
        self.assertEqual(tier.hash_of(tier.files_of("t")), before)
        self.write("src/c.h", "changed")
        self.assertNotEqual(tier.hash_of(tier.files_of("t")), before)

    def test_a_record_is_read_back(self):
        self.assertEqual(tier.recorded(), {})
        tier.record("t", "0123")
        tier.record("u", "4567")
        self.assertEqual({name: row[0] for name, row in tier.recorded().items()}, {"t": "0123", "u": "4567"})


class Here(unittest.TestCase):
    def test_each_tier_stands_on_something(self):
        fresh = tier_as_it_is()
        for name in fresh.TIERS:
            self.assertIn("src/ground/base/result.h", fresh.files_of(name))

    def test_nothing_that_a_tier_names_is_gone(self):
        for name, patterns in tier_as_it_is().TIERS.items():
            for pattern in patterns:
                self.assertTrue(glob.glob(os.path.join(ROOT, pattern), recursive=True), f"{name}: {pattern}")


if __name__ == "__main__":
    unittest.main()
