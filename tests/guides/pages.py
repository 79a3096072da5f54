#!/usr/bin/env python3
"""Types every command of the guides (docs/guide/*.md, README.md) as the pages have it, and compares what they print.

  tests/guides/pages.py PROGRAM TIER [--page NAME] [--keep] [--print]

In a page's fenced blocks a line `$ command` is typed, in a shell that lasts for the page, in an empty folder with
PROGRAM first on PATH; the lines below it are what it must print, on stdout and stderr together. A line `…` stands for
any number of lines, `…` inside of a line for any text. A command that shows an `error:` must end with another code than
0, all others with 0. A block without commands becomes a file where the paragraph before it ends with a colon and names
one last (`job.yaml`); where the repository has a file of that name, the two must be equal. A command in any other form (without `$`, or indented) is a failure, and so is a command or an
option between backticks that docs/reference/commands.md does not have.

pages.yaml says what differs from the page: tiers, what the reader has before, what is typed otherwise, what cannot run
here, and the parts of the output that change from run to run. An entry that fits nothing on the pages is a failure.
GTEST_OUTPUT=xml:FILE writes a GoogleTest report, as tools/run-tests reads it.
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = yaml.safe_load((pathlib.Path(__file__).parent / "pages.yaml").read_text(encoding="utf-8"))
TIMEOUT_S = 300


@dataclass
class Item:
    page: str
    line: int
    command: str = ""                            # else a file
    printed: list = field(default_factory=list)  # below the command
    name: str = ""
    text: str = ""


def path_of(page):
    return ROOT / ("README.md" if page == "README" else f"docs/guide/{page}.md")


def file_named_before(lines, fence):
    """The last `name.ext` of the paragraph before lines[fence], which ends with a colon."""
    end = fence
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    begin = end
    while begin > 0 and lines[begin - 1].strip() and not lines[begin - 1].startswith("```"):
        begin -= 1
    paragraph = " ".join(lines[begin:end])
    names = re.findall(r"`([\w~./-]+\.(?:yaml|json|jsonl|csv|txt|sh|sbatch|py))`", paragraph)
    return names[-1] if paragraph.endswith(":") and names else None


def read_page(page):
    """(items, problems) of a page."""
    lines = path_of(page).read_text(encoding="utf-8").splitlines()
    items, problems, at = [], [], 0
    while at < len(lines):
        if re.match(r" {4,}\$? ?systole ", lines[at]):
            problems.append(f"{page}:{at + 1}: a command in an indented block; write ``` around it and `$ ` before it")
        if not lines[at].startswith("```"):
            at += 1
            continue
        begin = at
        at += 1
        while not lines[at].startswith("```"):
            at += 1
        block = lines[begin + 1:at]
        at += 1
        if not any(line.startswith("$ ") for line in block):
            name = file_named_before(lines, begin)
            text = "\n".join(block) + "\n"
            if name and (ROOT / name).exists():
                if (ROOT / name).read_text(encoding="utf-8") != text:
                    problems.append(f"{page}:{begin + 1}: {name} in the repository is another")
            elif name:
                items.append(Item(page, begin + 1, name=name, text=text))
            problems += [f"{page}:{begin + 2 + i}: a command without `$ `: {line}"
                         for i, line in enumerate(block) if not name and re.match(r"(systole|tools/\S+|make) ", line)]
            continue
        for i, line in enumerate(block):
            last = items[-1] if items else None
            if line.startswith("$ "):
                items.append(Item(page, begin + 2 + i, command=line[2:]))
            elif last and last.command.endswith("\\"):
                last.command += "\n" + line
            else:
                last.printed.append(line)
    return items, problems


def wrong_words(page, commands):
    """Commands and options between backticks that systole does not have."""
    text = path_of(page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for words in re.findall(r"`(?:…)?systole ([^`]*)`", text):
        parts = words.split(" -- ")[0].split()
        name = next((" ".join(parts[:n]) for n in (2, 1) if " ".join(parts[:n]) in commands), None)
        if name is None:
            if not parts[0].startswith("-") and parts[0] != "help":
                yield f"{page}: `systole {words}`: there is no such command"
            continue
        for option in re.findall(r"(?<!\S)(--[\w-]+)", " ".join(parts)):
            if option not in commands[name] | commands["systole"]:
                yield f"{page}: `systole {words}`: {name} has no option {option}"


def commands_and_options():
    """command -> its options."""
    commands = {}
    for line in (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## systole"):
            options = commands.setdefault(line[3:].removeprefix("systole ").strip(), {"--help"})
        elif line.startswith("| `"):
            options.update(re.findall(r"--[\w-]+", line.split("|")[1]))
    return commands


class Masks:
    """What changes from run to run, made equal on both sides."""

    def __init__(self, machine):
        rules = [rule for rule in TABLE["volatile"] if "machine" not in rule or rule["machine"] != machine]
        self.rules = [(re.compile(rule["is"]), rule["as"]) for rule in rules]
        self.of_any_number = {rule["as"] for rule in rules if rule.get("any_number")}

    def masked(self, line, used=None):
        line = re.sub(r"\s+", " ", line).strip()  # columns are as wide as their numbers
        for pattern, stands in self.rules:
            line, times = pattern.subn(stands, line)
            if times and used is not None:
                used.add(pattern)
        return line

    def at_once(self, lines):
        """Lines of which there may be any number, one after the other, as one."""
        return [line for i, line in enumerate(lines)
                if i == 0 or line != lines[i - 1] or line not in self.of_any_number]

    def difference(self, printed, said):
        """None where `said` is what the page has."""
        expected, actual = (self.at_once([self.masked(line) for line in lines]) for lines in (printed, said))
        pattern = "".join("(?:[^\n]*\n)*?" if line in ("…", "...") else
                          "[^\n]*".join(map(re.escape, line.split("…"))) + "\n" for line in expected)
        if re.fullmatch(pattern, "".join(line + "\n" for line in actual)):
            return None
        return "\n".join(difflib.unified_diff(expected, actual, "the page", "printed", lineterm="", n=1))


def instruction_set():
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("flags", 1)[1].split("\n", 1)[0].split()
    return next(isa for flag, isa in (("amx_bf16", "amx"), ("avx512_bf16", "avx512-bf16"), ("avx512f", "avx512"), ("", "avx2"))
                if not flag or flag in flags)


class Page:
    def __init__(self, name, tier):
        self.name = name
        self.tier = tier
        self.table = TABLE["pages"].get(name) or {}
        self.items, self.problems = read_page(name)
        if name not in TABLE["pages"]:
            self.problems.append(f"{name}: has no entry in tests/guides/pages.yaml")
        for kind in ("typed", "needs", "tiers", "ends_with"):
            for entry in self.table.get(kind, []):
                if not any(entry["text"] in item.command or entry["text"] in item.text for item in self.items):
                    self.problems.append(f"{name}: `{entry['text']}` ({kind} of pages.yaml) is nowhere on the page")

    def entry(self, kind, item):
        return next((e for e in self.table.get(kind, []) if e["text"] in (item.command or item.text)), None)

    def has_in_this_tier(self, item):
        entry = self.entry("tiers", item) or self.table
        return self.tier in entry["tier"].split()

    def typed(self, text):
        for entry in (e for e in self.table.get("typed", []) if e.get("tier", self.tier) == self.tier):
            text = text.replace(entry["text"], os.path.expandvars(str(entry["as"])))
        return text


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return str(any_port.getsockname()[1])


def plugins():
    return os.environ.get("SYSTOLE_XLA_PLUGINS") or os.path.expanduser("~/.local/share/systole/xla-plugins")


class Session:
    """One folder, in which one or several pages are gone through."""

    def __init__(self, program, keep):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="systole-guide-"))
        self.keep = keep
        self.work = self.folder / "work"
        self.said = self.folder / "said"
        for path in (self.work / "build", self.said):
            path.mkdir(parents=True)
        home = self.folder / "home"
        home.mkdir()
        shutil.copytree(ROOT / "examples", self.work / "examples", ignore=shutil.ignore_patterns("rendered"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "GTEST_"))}
        self.environment.update(PATH=f"{program.parent}:{os.environ['PATH']}", HOME=str(home), NO_COLOR="1", ROOT=str(ROOT),
                                KEPT=str(ROOT / "build/guides"), TMPDIR=str(self.folder), PORT=free_port(),
                                SYSTOLE_XLA_PLUGINS=plugins())

    def close(self):
        if self.keep:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, page, items):
        """Types `items` in one shell. Gives (item, typed, code or None, lines, seconds) of each command."""
        script = ["exec </dev/null", f"cd {self.work}"]
        before = page.table.get("before", [])
        before = "".join(TABLE["before"][name] for name in (before.get(page.tier, []) if isinstance(before, dict) else before))
        for number, item in enumerate([Item(page.name, 0, command=f"set -e\n{before}\nset +e")] + items):
            if item.command:
                out = self.said / f"{page.name}-{number}"
                text = page.typed(item.command) if number else item.command
                script.append(f"began=$EPOCHREALTIME\n{{\n{text}\n}} >{out} 2>&1\necho $? $began $EPOCHREALTIME >{out}.end")
            else:
                name = item.name.replace("~", self.environment["HOME"])
                end = "END-OF-THE-PAGE'S-FILE".replace("'", "")
                script.append(f"mkdir -p \"$(dirname {name})\"\ncat >{name} <<'{end}'\n{page.typed(item.text)}{end}")
        with subprocess.Popen(["bash", "-c", "\n".join(script) + "\n"], env=self.environment, start_new_session=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as shell:
            try:
                shell.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
        for number, item in enumerate([Item(page.name, 0, command="what the reader has before")] + items):
            if not item.command:
                continue
            out = self.said / f"{page.name}-{number}"
            lines = out.read_text(encoding="utf-8", errors="replace").splitlines() if out.exists() else []
            end = pathlib.Path(f"{out}.end")
            code, began, ended = end.read_text(encoding="utf-8").split() if end.exists() else (None, 0, 0)
            yield item, page.typed(item.command), code and int(code), lines, float(ended) - float(began)


def judge(page, item, typed, code, lines, masks):
    """None, or what is wrong."""
    listed = page.entry("ends_with", item)
    wanted = listed["code"] if listed else "an error" if any(l.startswith("error:") for l in item.printed) else 0
    as_typed = f" (typed: {typed})" if typed != item.command else ""
    where = f"{os.path.relpath(path_of(item.page), ROOT)}:{item.line}: $ {item.command}{as_typed}"
    if code is None or (code == 0 if wanted == "an error" else code != wanted):
        return f"{where}\nends with {code}, not {wanted}:\n" + "\n".join(lines[-30:])
    if item.printed and not page.entry("not_compared", item):
        printed = list(item.printed)
        while not printed[-1].strip():
            printed.pop()
        difference = masks.difference(printed, lines)
        if difference is not None:
            return f"{where}\nprints another thing:\n{difference}"
    return None


def groups_of(pages, wanted):
    """Pages that go on in the folder of another are one group."""
    groups = []
    for page in pages:
        before = next((g for g in groups if page.table.get("after") in [p.name for p in g]), None)
        if before:
            before.append(page)
        else:
            groups.append([page])
    return [g for g in groups if not wanted or any(p.name == wanted for p in g)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("tier", choices=sorted(TABLE["tiers"]))
    parser.add_argument("--page")
    parser.add_argument("--keep", action="store_true", help="leave the folders in which they were typed")
    parser.add_argument("--print", action="store_true", help="print what each command printed")
    options = parser.parse_args()

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # the pages' machine has two cores
    results = []  # name, seconds, problem, skip
    found = sorted(p.stem for p in (ROOT / "docs/guide").glob("*.md"))
    listed = list(TABLE["pages"])
    pages = [Page(name, options.tier) for name in listed + [n for n in found if n not in listed] if path_of(name).exists()]
    problems = [f"{name}: pages.yaml has it, docs/guide has not" for name in listed if not path_of(name).exists()]
    commands = commands_and_options()
    for page in pages:
        problems += page.problems + list(wrong_words(page.name, commands))
    every, used = Masks(machine=None), set()
    for line in (line for page in pages for item in page.items for line in item.printed):
        every.masked(line, used)
    problems += [f"pages.yaml: nothing on the pages is {pattern.pattern}" for pattern, _ in every.rules if pattern not in used]
    results.append(("the_pages_and_their_table", 0.0, "\n".join(problems), None))

    masks = Masks(instruction_set())
    for group in groups_of([p for p in pages if p.table], options.page):
        plan = []
        for page in group:
            mine = [item for item in page.items if not item.command or page.has_in_this_tier(item)]
            needs = {}
            for item in mine:
                need = item.command and page.entry("needs", item)
                if need and not ("if" in need and subprocess.run(["bash", "-c", need["if"]], check=False, cwd=ROOT,
                                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0):
                    needs[id(item)] = need["why"]
                    results.append((f"{page.name}.{item.line}", 0.0, None, f"{item.command}: {need['why']}"))
            run = [item for item in mine if id(item) not in needs]
            if any(item.command for item in run):
                plan.append((page, run))
        if not plan:
            continue
        session = Session(options.program.resolve(), options.keep)
        for page, items in plan:
            for item, typed, code, lines, seconds in session.run(page, items):
                problem = judge(page, item, typed, code, lines, masks)
                if item.line or problem:
                    results.append((f"{page.name}.{item.line}", seconds, problem, None))
                if typed != item.command:
                    print(f"typed otherwise: {page.name}:{item.line}: {typed}")
                if options.print:
                    print(f"{page.name}:{item.line} {seconds:.1f} s, {code}: $ {typed}", *lines, sep="\n  ")
        session.close()

    report(results)
    return 1 if any(problem for _, _, problem, _ in results) else 0


def report(results):
    for name, seconds, problem, skip in results:
        if problem:
            print(f"FAILED {name}: {problem}\n")
        if skip:
            print(f"skipped {name}: {skip}")
    failed, skipped = (sum(bool(r[i]) for r in results) for i in (2, 3))
    print(f"{len(results) - failed - skipped} passed, {failed} failed, {skipped} skipped; {sum(r[1] for r in results):.0f} s")
    kind, _, path = os.environ.get("GTEST_OUTPUT", "").partition(":")
    if kind != "xml":
        return
    suite = xml.Element("testsuite")
    for name, seconds, problem, skip in results:
        case = xml.SubElement(suite, "testcase", classname="Guides", name=name, status="run", time=f"{seconds:.3f}")
        if problem:
            xml.SubElement(case, "failure", message=problem)
        if skip:
            xml.SubElement(case, "skipped", message=f"{name}\n{skip}")
    root = xml.Element("testsuites")
    root.append(suite)
    xml.ElementTree(root).write(path)


if __name__ == "__main__":
    sys.exit(main())
