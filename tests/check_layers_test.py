"""tools/check-layers finds what it must and lets pass what the table allows."""
import unittest

from check_case import CheckCase

PAGE = """
## Folders
| folder | holds | may include |
|---|---|---|
| `ground/base` | x | |
| `ground/tensor` | x | |
| `describe/graph` | x | tensor |
| `execute/runtime` | x | graph |
| `execute/cpu` | x | runtime graph |
| `operate/cli` | x | everything |
## Tests
| folder | tests may also include |
|---|---|
| `describe/graph` | runtime |
## Vendors
| headers | only in |
|---|---|
| `dnnl` | `execute/cpu` |
"""


class CheckLayers(CheckCase):
    tool = "check-layers"
    success = "all allowed"

    def said(self, files, page=PAGE):
        return self.output_for({"docs/concepts/architecture.md": page, **files})

    def test_what_the_table_allows_passes(self):
        self.assertIn("all allowed", self.said({
            "src/ground/base/a.h": "", "src/ground/tensor/t.h": '#include "ground/base/a.h"\n',
            "src/describe/graph/g.h": '#include <vector>\n#include "ground/tensor/t.h"\n',
            "src/execute/runtime/r.h": '#include "describe/graph/g.h"\n',
            "src/describe/graph/g_test.cc": '#include "execute/runtime/r.h"\n',
            "src/execute/cpu/c.cc": '#include <dnnl.hpp>\n', "src/operate/cli/main.cc": '#include "execute/runtime/r.h"\n'}))

    def test_an_include_upwards(self):
        self.assertIn("src/ground/tensor/t.h:1: ground/tensor may not include describe/graph",
                      self.said({"src/ground/tensor/t.h": '#include "describe/graph/g.h"\n', "src/describe/graph/g.h": ""}))

    def test_only_tests_use_their_own_row(self):
        self.assertIn("describe/graph may not include execute/runtime",
                      self.said({"src/describe/graph/g.cc": '#include "execute/runtime/r.h"\n',
                                 "src/execute/runtime/r.h": ""}))

    def test_a_vendors_header_outside_its_folder(self):
        self.assertIn("<dnnl.hpp> belongs to execute/cpu", self.said({"src/execute/runtime/r.h": "#include <dnnl.hpp>\n"}))

    def test_a_folder_nobody_listed(self):
        self.assertIn("stands in no folder", self.said({"src/describe/helpers/h.h": ""}))

    def test_an_include_that_is_not_rooted(self):
        self.assertIn("no file under src/", self.said({"src/ground/base/a.h": '#include "b.h"\n', "src/ground/base/b.h": ""}))

    def test_a_header_of_tests_outside_testing(self):
        files = {"src/ground/base/clock.h": "", "src/ground/base/fake.h": "", "src/ground/base/stub.h": "",
                 "src/ground/base/stub.cc": '#include "ground/base/stub.h"\n',
                 "src/ground/base/clock.cc": '#include "ground/base/clock.h"\n',
                 "src/ground/base/a.cc": '#include "ground/base/clock.h"\n',
                 "src/ground/base/a_test.cc": '#include "ground/base/clock.h"\n#include "ground/base/fake.h"\n',
                 "src/ground/tensor/b_bench.cc": '#include "ground/base/stub.h"\n'}
        said = self.said(files)
        self.assertIn("src/ground/base/fake.h:1: only tests include it (src/ground/base/a_test.cc): "
                      "git mv it to src/ground/base/testing/fake.h", said)
        self.assertIn("src/ground/base/stub.h:1: only tests include it (src/ground/tensor/b_bench.cc)", said)
        self.assertNotIn("clock.h", said)

    def test_a_header_of_tests_where_it_belongs(self):
        page = PAGE.replace("## Tests", "| `laws` | x | everything |\n## Tests", 1)
        self.assertIn("all allowed", self.said({
            "src/ground/base/testing/fake.h": "", "src/laws/tiny.h": '#include "ground/base/testing/fake.h"\n',
            "src/laws/tiny.cc": '#include "laws/tiny.h"\n', "src/laws/a_test.cc": '#include "laws/tiny.h"\n'}, page))

    def test_a_header_of_tests_in_what_is_none(self):
        self.assertIn("src/ground/tensor/t.cc:1: ground/base/testing/fake.h is of tests",
                      self.said({"src/ground/base/testing/fake.h": "",
                                 "src/ground/base/a_test.cc": '#include "ground/base/testing/fake.h"\n',
                                 "src/ground/tensor/t.cc": '#include "ground/base/testing/fake.h"\n'}))

    def test_files_in_a_circle(self):
        self.assertIn("circle: ground/base/a.h → ground/base/b.h → ground/base/a.h",
                      self.said({"src/ground/base/a.h": '#include "ground/base/b.h"\n',
                                 "src/ground/base/b.h": '#include "ground/base/a.h"\n'}))

    def test_a_table_with_a_cycle(self):
        page = PAGE.replace("| `ground/tensor` | x | |", "| `ground/tensor` | x | graph |")
        self.assertIn("the table allows a cycle", self.said({"src/ground/base/a.h": ""}, page))

    def test_a_table_where_predict_meets_execute(self):
        page = PAGE.replace("| `operate/cli`", "| `predict/perf` | x | runtime |\n| `operate/cli`")
        self.assertIn("predict and execute never meet", self.said({"src/ground/base/a.h": ""}, page))


if __name__ == "__main__":
    unittest.main()
