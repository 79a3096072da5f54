"""tests/guides/pages.py types what pages have, and lets pass no page that says another thing than its program."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = """#!/bin/sh
case "$1" in
  plan) echo "planned $(cat "$2") on $(date +%F) in 1.$$ s" ;;
  *) echo "error: no command '$1'" >&2; exit 2 ;;
esac
"""
COMMANDS = "## systole\n\n| `--json` | flag |\n\n## systole plan\n\n| `--set` | |\n"
TABLE = """tiers: { reads: all of them }
volatile:
  - { is: '\\d{4}-\\d\\d-\\d\\d', as: WHEN, why: dates }
  - { is: '[\\d.]+ s$', as: TIME, why: durations }
before: { ready: "echo there >before.txt\\n" }
pages:
  README: { tier: reads }
  a:
    tier: reads
    before: [ready]
    needs:
      - { text: fly, why: wings }
"""
PAGE = """# A page

A file, `job.yaml`:

```yaml
job
```

```
$ systole plan job.yaml   # what it takes
planned job on 2020-01-01 in 1.5 s
$ export A=there
$ systole walk
error: no command …
$ fly
$ cat before.txt; echo 1; echo 2; echo $A
there
…
there
```

`systole plan --set a=b` plans.
"""


class Pages(unittest.TestCase):
    def said(self, code, page=PAGE, table=TABLE):
        with tempfile.TemporaryDirectory() as root:
            top = pathlib.Path(root)
            for path, text in {"docs/guide/a.md": page, "docs/reference/commands.md": COMMANDS, "README.md": "# R\n",
                               "tests/guides/pages.yaml": table, "bin/systole": PROGRAM, "examples/x.yaml": "x\n"}.items():
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_text(text, encoding="utf-8")
            (top / "bin/systole").chmod(0o755)
            shutil.copy(HERE / "pages.py", top / "tests/guides")
            done = subprocess.run([sys.executable, top / "tests/guides/pages.py", top / "bin/systole", "reads"],
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, "GTEST_OUTPUT": f"xml:{top}/report.xml"})
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stdout + (top / "report.xml").read_text(encoding="utf-8")

    def test_a_page_that_is_right(self):
        said = self.said(0)
        self.assertIn("5 passed, 0 failed, 1 skipped", said)
        self.assertIn("skipped a.15: fly: wings", said)
        self.assertIn('<skipped message="a.15', said)

    def test_lines_of_any_number(self):
        table = TABLE.replace("as: TIME, why", "as: TIME, any_number: true, why")
        page = PAGE.replace("$ export", "$ echo 1 s; echo there\n1.5 s\n2.5 s\nthere\n$ export", 1)
        self.assertIn("6 passed, 0 failed", self.said(0, page, table))
        self.assertIn("prints another thing", self.said(1, page))

    def test_another_output(self):
        said = self.said(1, PAGE.replace("planned job", "planned a job"))
        self.assertIn("docs/guide/a.md:10: $ systole plan job.yaml", said)
        self.assertIn("-planned a job on WHEN in TIME\n+planned job on WHEN in TIME", said)
        self.said(1, PAGE.replace("there\n…\nthere", "there\n1\nthere"))

    def test_another_end(self):
        self.assertIn("ends with 2, not 0", self.said(1, PAGE.replace("error: no command …\n", "")))
        self.assertIn("ends with 0, not an error", self.said(1, PAGE.replace("planned job", "error: planned job")))

    def test_commands_that_would_not_be_typed(self):
        self.assertIn("a command without `$ `", self.said(1, PAGE + "\n```\nsystole plan job.yaml\n```\n"))
        self.assertIn("indented block", self.said(1, PAGE + "\n    systole plan job.yaml\n"))

    def test_words_that_systole_does_not_have(self):
        self.assertIn("plan has no option --on", self.said(1, PAGE.replace("--set", "--on")))
        self.assertIn("no such command", self.said(1, PAGE.replace("`systole plan --set", "`systole run --set")))

    def test_a_table_that_fits_nothing(self):
        self.assertIn("`swim` (needs", self.said(1, table=TABLE.replace("text: fly", "text: swim")))
        self.assertIn("nothing on the pages is x+", self.said(1, table=TABLE.replace("before: {", "  - { is: 'x+', as: y }\nbefore: {")))
        self.assertIn("a: has no entry", self.said(1, table=TABLE.replace("  a:\n", "  b:\n")))

    def test_a_file_of_the_repository(self):
        of_it = PAGE + "\n`examples/x.yaml`:\n\n```yaml\n{}\n```\n"
        self.said(0, of_it.format("x"))
        self.assertIn("examples/x.yaml in the repository is another", self.said(1, of_it.format("y")))


if __name__ == "__main__":
    unittest.main()
