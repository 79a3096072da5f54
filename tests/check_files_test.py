"""tools/check-files finds calls of std::filesystem that throw, and lets pass those that are handed an error_code."""
import unittest

from check_case import CheckCase


class CheckFiles(CheckCase):
    tool = "check-files"

    def said(self, text, name="a.cc"):
        return self.output_for({name: text})

    def test_calls_that_throw(self):
        for call in ["std::filesystem::exists(path)", "fs::is_directory(f(a, b))", "fs::current_path()",
                     "std::filesystem::create_directories(path.parent_path())",
                     "std::filesystem::absolute(\n    path)", "fs::rename(part, place)"]:
            self.assertIn("a.cc:1: ", self.said(f"x = {call};\n"), call)
        loop = "std::error_code failed;\nfor (const auto& e : fs::directory_iterator(folder, failed)) use(e);\n"
        self.assertIn("a.cc:2: a loop over directory_iterator throws", self.said(loop))
        self.assertIn("is_directory throws", self.said("const fs::directory_entry& e = *at;\nif (e.is_directory()) go();\n"))

    def test_what_does_not_throw(self):
        code = "std::error_code failed;\n"
        for call in ["fs::exists(path, failed)", "fs::create_directories(f(a, b), failed)", "fs::path(a) / b",
                     "fs::directory_iterator at(folder, failed)", "store.exists(path)"]:
            self.assertEqual("", self.said(code + call + ";\n"), call)
        self.assertEqual("", self.said("// fs::exists(path)\n"))
        self.assertEqual("", self.said("fs::exists(path);\n", "a_test.cc"))


if __name__ == "__main__":
    unittest.main()
