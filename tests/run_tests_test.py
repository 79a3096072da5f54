"""tools/run-tests counts passes, failures, skips and crashes, and fails on a skip that nobody listed."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def case(name, inside="", status="run", seconds=0):
    return f'<testcase name="{name}" classname="Suite" status="{status}" time="{seconds}">{inside}</testcase>'


SKIP = '<skipped message="a_test.cc:7&#x0A;no GPU here" />'


class RunTests(unittest.TestCase):
    def run_tests(self, *folders, options=(), costs=None):
        """folders: (label, [(binary, cases, exit code)]); each becomes a build folder of scripts that act as tests."""
        with tempfile.TemporaryDirectory() as root:
            arguments = []
            for number, (label, binaries) in enumerate(folders):
                folder = os.path.join(root, str(number))
                os.makedirs(folder)
                listing = ""
                for name, cases, code in binaries:
                    path = os.path.join(folder, name)
                    report = "<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>"
                    with open(path, "w", encoding="utf-8") as script:
                        script.write(f"#!/bin/sh\necho said\ncat > \"${{GTEST_OUTPUT#xml:}}\" <<'E'\n{report}\nE\n{code}\n")
                    os.chmod(path, 0o755)
                    listing += f'add_test({name} "{path}")\nset_tests_properties({name} PROPERTIES LABELS "{label or "x"}" COST {(costs or {}).get(name, 0)})\n'
                with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
                    file.write(listing)
                arguments.append(folder + (f"={label}" if label else ""))
            done = subprocess.run([os.path.join(ROOT, "tools", "run-tests"), "--only", "fake_", *options, *arguments],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def last(self, *folders):
        code, output = self.run_tests(*folders)
        return code, output.strip().split("\n")[-1], output

    def test_all_pass(self):
        code, last, output = self.last(("", [("fake_a", [case("x"), case("y")], "exit 0"), ("fake_b", [case("z")], "exit 0")]))
        self.assertEqual((code, last), (0, "3 passed, 0 failed, 0 skipped"), output)

    def test_labels_say_which(self):
        for wanted, passed in (("slow", 0), ("!slow", 1), ("slow,quick", 1), ("!slow,quick", 0)):
            with tempfile.TemporaryDirectory() as root:
                path = os.path.join(root, "fake_a")
                with open(path, "w", encoding="utf-8") as script:
                    script.write("#!/bin/sh\nexit 0\n")
                os.chmod(path, 0o755)
                with open(os.path.join(root, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
                    file.write(f'add_test(fake_a "{path}")\nset_tests_properties(fake_a PROPERTIES LABELS quick)\n')
                done = subprocess.run([os.path.join(ROOT, "tools", "run-tests"), "--only", "fake_", f"{root}={wanted}"],
                                      capture_output=True, text=True, check=False)
            self.assertEqual(f"{passed} passed, 0 failed" in done.stdout, passed == 1, (wanted, done.stdout, done.stderr))
    def test_a_failure_is_told_with_its_output(self):
        code, last, output = self.last(("", [("fake_a", [case("x", '<failure message="1 is not 2"/>'), case("y")], "exit 1")]))
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("Suite.x: 1 is not 2", output)
        self.assertIn("| said", output)

    def test_a_crash_is_a_failure(self):
        code, last, output = self.last(("", [("fake_a", [case("x")], "kill -SEGV $$")]))
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("ended by signal 11", output)

    def test_a_program_without_tests_fails(self):
        code, last, output = self.last(("", [("fake_a", [], "exit 0"), ("fake_b", [case("x")], "exit 0")]))
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"), output)
        self.assertIn("fake_a: ran no test", output)

    def test_a_script_without_tests_fails(self):
        loader = importlib.machinery.SourceFileLoader("run_tests", os.path.join(ROOT, "tools", "run-tests"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
        loader.exec_module(module)
        test = "class A(unittest.TestCase):\n    def test_a(self):\n        pass\n"
        for text, outcome in ((test + "unittest.main()\n", "passed"), ("unittest.main()\n", "failed"), (test, "failed")):
            with tempfile.TemporaryDirectory() as root:
                path = os.path.join(root, "a_test.py")
                with open(path, "w", encoding="utf-8") as script:
                    script.write("import unittest\n" + text)
                ran = module.run_one({"name": path, "folder": root, "command": [sys.executable, path], "cwd": root,
                                      "env": {}, "timeout": 60, "script": True})
            self.assertEqual([told for _, told, _ in ran["outcomes"]], [outcome], text)

    def test_a_skip_that_nobody_listed_fails(self):
        code, last, output = self.last(("", [("fake_a", [case("x", SKIP), case("y")], "exit 0")]))
        self.assertEqual((code, last), (1, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped Suite.x: no GPU here   NOT in tests/needs-hardware.txt", output)

    def test_a_disabled_test_is_a_skip(self):
        code, _, output = self.last(("", [("fake_a", [case("x", status="notrun")], "exit 0")]))
        self.assertEqual(code, 1)
        self.assertIn("disabled in the source", output)

    def test_what_another_build_ran_is_not_skipped(self):
        code, last, output = self.last(("", [("fake_a", [case("x", SKIP), case("y")], "exit 0")]),
                                       ("laws", [("fake_a", [case("x"), case("y")], "exit 0")]))
        self.assertEqual((code, last), (0, "2 passed, 0 failed, 0 skipped"), output)

    def test_what_costs_most_begins_first(self):
        names = ["fake_a", "fake_b", "fake_c", "fake_d"]
        _, output = self.run_tests(("", [(name, [case("x")], "exit 0") for name in names]), costs={"fake_c": 90, "fake_d": 20})
        ended = [line.split()[1].split("/")[-1] for line in output.split("\n") if line.startswith("ok")]
        self.assertEqual(ended[:2], ["fake_c", "fake_d"], output)

    def test_what_waits_runs_beside_two_others(self):
        with tempfile.TemporaryDirectory() as root:
            met = os.path.join(root, "met")
            sees = f"for i in $(seq 100); do [ -e {met} ] && exit 0; sleep 0.1; done; exit 1"
            code, last, output = self.last(("", [("fake_a", [case("x")], sees), ("fake_b", [case("y")], sees)]),
                                           ("waits", [("fake_w", [case("z")], f"touch {met}")]))
        self.assertEqual((code, last), (0, "3 passed, 0 failed, 0 skipped"), output)

    def test_the_slowest_are_told(self):
        cases = [case("quick", seconds=0.1), case("slow", seconds=7.25), case("slower", seconds=60)]
        _, output = self.run_tests(("", [("fake_a", cases, "exit 0")]), options=["--slowest", "2"])
        told = [line.split()[-1] for line in output.split("\n") if " s  " in line and "Suite" in line]
        self.assertEqual(told, ["Suite.slower", "Suite.slow"], output)

    def test_a_folder_without_tests_is_an_error(self):
        code, last, _ = self.last(("", []))
        self.assertEqual(code, 2)
        self.assertIn("ctest knows no test there", last)


if __name__ == "__main__":
    unittest.main()
