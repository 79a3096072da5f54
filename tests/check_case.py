"""Runs a check of tools/ on a small repository, for the tests of the checks."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class CheckCase(unittest.TestCase):
    tool = ""     # in tools/
    success = ""  # printed if and only if it exits with 0; empty: it then prints nothing

    def output_for(self, files):
        """What the tool prints for a repository of these files, path -> text."""
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([os.path.join(ROOT, "tools", self.tool), root], capture_output=True, text=True,
                                  check=False)
        passed = self.success in done.stdout if self.success else done.stdout == ""
        self.assertEqual(done.returncode == 0, passed, done.stdout + done.stderr)
        return done.stdout
