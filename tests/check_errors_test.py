"""tools/check-errors finds decisions by the words of an error, and lets pass those by its kind, code and key."""
import unittest

from check_case import CheckCase


class CheckErrors(CheckCase):
    tool = "check-errors"

    def said(self, text, name="a.cc"):
        return self.output_for({name: text})

    def test_looks_into_words(self):
        for words in ["why.message.find(\"x\") != npos", "status.error().message.starts_with(\"x\")",
                      "failure->message\n    .ends_with(kFlipped)", "e.hint.contains('x')", "e.message.substr(0, 3)"]:
            self.assertIn("a.cc:1: looks into the ", self.said(f"if ({words}) go();\n"), words)
        for words in ["e.message == told", "told != r.error().message", "e.hint == \"x\""]:
            self.assertIn("a.cc:1: compares the ", self.said(f"if ({words}) go();\n"), words)

    def test_what_decides_otherwise(self):
        for words in ["e.code == ErrorCode::flipped_bit", "e.hint.empty()", "tensor.name != wrong.key",
                      "reply.message.find(words) != npos", "e.kind == ErrorKind::io ? e.message : \"\""]:
            self.assertEqual("", self.said(f"x = {words};\n"), words)
        self.assertEqual("", self.said("// e.message.find(\"x\")\n"))
        self.assertEqual("", self.said("EXPECT_NE(e.message.find(\"x\"), npos);\n", "a_test.cc"))


if __name__ == "__main__":
    unittest.main()
