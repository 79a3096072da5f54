#!/usr/bin/env python3
"""tools/xla-plugins without a registry: what it says, what it leaves alone, and that nothing half-done stays."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(ROOT, "tools", "xla-plugins")


def section(name):
    """The lines of one section of tools/xla-plugins.txt, as installed.txt keeps them."""
    with open(TOOL + ".txt", encoding="utf-8") as pins:
        text = pins.read().split(f"[{name}]\n")[1].split("\n[")[0]
    return "".join(line + "\n" for line in text.splitlines() if line and not line.startswith("#"))


class XlaPlugins(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.scratch.name, "plugins")

    def tearDown(self):
        self.scratch.cleanup()

    def run_tool(self, *words, **env):
        # Nobody listens at the discard port: the registry cannot be reached.
        away = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_FIND_LINKS": "",
                "SYSTOLE_XLA_PLUGINS": self.folder, "PIP_CONFIG_FILE": os.devnull}
        return subprocess.run([TOOL, *words], env={**os.environ, **away, **env}, capture_output=True, text=True,
                              timeout=120)

    def test_wrong_words(self):
        for words, said in ((["abacus"], "no plugin is called 'abacus': tpu gpu cpu"), (["--fast"], "unknown option"),
                            (["--folder"], "--folder needs a folder")):
            done = self.run_tool(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertFalse(os.path.exists(self.folder))

    def test_without_a_registry(self):
        done = self.run_tool("cpu")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the plugin 'cpu' could not be had", done.stderr)
        self.assertIn(f"hint: with a registry in reach, tools/xla-plugins --folder {self.folder} cpu", done.stderr)
        self.assertEqual(os.listdir(self.folder), [".lock"])

    def test_what_is_there_is_left_alone(self):
        os.makedirs(os.path.join(self.folder, "tpu"))
        with open(os.path.join(self.folder, "tpu", "installed.txt"), "w", encoding="utf-8") as file:
            file.write(section("tpu"))
        done = self.run_tool("tpu")
        self.assertEqual((done.returncode, done.stdout), (0, f"tpu: there already, in {self.folder}/tpu\n"))
        listed = self.run_tool("--list").stdout
        self.assertIn(f"folder: {self.folder}\n", listed)
        self.assertIn("tpu: libtpu 0.0.51", listed)
        self.assertEqual(listed.count("(installed, "), 1)
        self.assertEqual(listed.count("(not installed)"), 4)

    def test_folders(self):
        home = self.scratch.name
        for env, folder in (({"SYSTOLE_XLA_PLUGINS": "", "XDG_DATA_HOME": home + "/x"}, "/x/systole/xla-plugins"),
                            ({"SYSTOLE_XLA_PLUGINS": "", "XDG_DATA_HOME": "", "HOME": home},
                             "/.local/share/systole/xla-plugins")):
            self.assertIn(f"folder: {home}{folder}\n", self.run_tool("--list", **env).stdout)
        self.assertIn("folder: /elsewhere\n", self.run_tool("--list", "--folder", "/elsewhere").stdout)

    def test_every_pin_is_whole(self):
        for name in ("tpu", "gpu", "cpu", "cpu-106", "cpu-81"):
            text = section(name)
            self.assertRegex(text, r"(?m)^about: .*PJRT API 0\.\d+", name)
            self.assertRegex(text, r"(?m)^keep: \S+", name)
            for line in text.splitlines():
                if "==" in line:
                    self.assertRegex(line, r"^[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
