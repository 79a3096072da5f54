"""tools/check-names finds types of one name in one namespace, and lets pass what the compiler or a file keeps apart."""
import unittest

from check_case import CheckCase

A = "namespace systole {\nstruct Cluster {\n  int n = 0;\n};\n}  // namespace systole\n"


class CheckNames(CheckCase):
    tool = "check-names"
    success = "each of its own"

    def said(self, files):
        return self.output_for({f"src/{path}": text for path, text in files.items()})

    def test_two_of_one_name(self):
        said = self.said({"a/a.h": A, "b/b.h": A.replace("struct", "class")})
        self.assertIn("src/b/b.h:2: systole::Cluster is another type at src/a/a.h:2", said)
        said = self.said({"a/a.h": A, "b/b.cc": A.replace("struct Cluster {", "template <typename T> struct Cluster final {")})
        self.assertIn("src/b/b.cc:2", said)

    def test_what_is_kept_apart(self):
        passes = [A.replace("namespace systole {", "namespace systole {\nnamespace {").replace("};\n", "};\n}  // namespace\n"),
                  A.replace("systole", "systole::cli"),
                  A.replace("struct Cluster {\n  int n = 0;\n};", "struct Cluster;\nclass Cluster;"),
                  A.replace("struct Cluster {", "struct Cluster::Part {"),
                  A.replace("Cluster", "Clusters")]
        for other in passes:
            self.assertIn("each of its own", self.said({"a/a.h": A, "b/b.h": other}))


if __name__ == "__main__":
    unittest.main()
