"""tools/check-docs finds names in the documentation of what does not exist, and lets pass what does."""
import unittest

from check_case import CheckCase

FILES = {
    "Makefile": ".PHONY: test lint\ntest: x\n\t@true\n",
    "docs/reference/commands.md": "## systole\n| `--json` | |\n## systole plan\n| `--on` | |\n## systole ckpt show\n",
    "docs/reference/keys.md": "| `train.batch` | |\n| `train.optimizer.kind` | |\n",
    "docs/guide/other.md": "# Other page\n## Where it ends\n",
    "src/ground/base/CMakeLists.txt": "systole_library(base\n  SOURCES a.cc)\n",
    "src/ground/base/result.h": "class SomeName {};\n",
    "src/ground/base/result_test.cc": "TEST(Result, of_a_value) {}\nTEST_P(Stores, forget) {}\n"
                                      "INSTANTIATE_TEST_SUITE_P(Kinds, Stores, 1);\n",
}


class CheckDocs(CheckCase):
    tool = "check-docs"
    success = "is there"

    def said(self, page, name="docs/guide/page.md"):
        return self.output_for({**FILES, name: page})

    def test_what_exists_passes(self):
        self.assertIn("is there", self.said(
            "[a](other.md#where-it-ends) [b](https://example.org/x) `src/ground/base/result.h` `result.h` `base/result.h`\n"
            "`ground/base` `Result.of_a_value` `Result.*` `Kinds/Stores.for…` `base_test` `SomeName` `train.batch`\n"
            "`train.optimizer` `systole plan --on h100:8 --json` `plan --on X` `--on` `make lint` `gcloud x --zone`\n"
            "`mine.yaml` `runs/mine-1` `build/data` `train.yaml` A100 `systole help`\n"
            "```\n$ systole plan a.yaml --on any\n$ make test\n```\n"))

    def test_what_does_not_exist_is_named(self):
        for words, found in {
                "x\n[a](none.md)": "docs/guide/page.md:2: no file docs/guide/none.md",
                "[a](other.md#nowhere)": "no heading #nowhere in docs/guide/other.md",
                "`src/ground/none.h`": "no file src/ground/none.h", "`none.cc`": "no file none.cc",
                "`ground/none`": "no file ground/none", "`Result.of_none`": "no test Result.of_none",
                "`Other/Stores.forget`": "no test Other/Stores.forget", "`none_test`": "no test program none_test",
                "`NoName`": "no name NoName", "`train.none`": "no key train.none",
                "`systole none`": "no command systole none", "`systole plan --none`": "systole plan has no option --none",
                "`plan --none`": "systole plan has no option --none", "`--none`": "no option --none",
                "`make none`": "no target none", "```\n$ systole ckpt none\n```": "no command systole ckpt",
                "as E222 says": "E222 is a row"}.items():
            self.assertIn(found, self.said(words + "\n"))

    def test_records_of_a_day_are_not_read(self):
        self.assertIn("is there", self.said("`NoName` E222\n", "docs/results/2026-01-01.md"))


if __name__ == "__main__":
    unittest.main()
