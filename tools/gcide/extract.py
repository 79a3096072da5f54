#!/usr/bin/env python3
"""English text from Debian's dict-gcide package: one dictionary entry per line, markup stripped.

    apt-get install dict-gcide zstd
    tools/gcide/extract.py build/gcide

reads /usr/share/dictd/gcide.dict.dz (dictzip is gzip with an index inside) and gcide.index (headword, offset and
length in base 64), and writes into the folder given

    train.txt, held_out.txt            UTF-8, one entry per line, inner line breaks collapsed to single spaces
    train.txt.zst, held_out.txt.zst    the same, compressed by the `zstd` program

The split is by content: an entry is held out when the first eight bytes of sha256(entry, without its newline), read
as a big-endian integer, are below `--held-out` x 2^64. So the two files share no entry, adding entries moves no
other entry, and a compressor can be measured on exactly the bytes a model is. Entries that become equal after
stripping are written once. The order is that of the dictionary; equal input gives equal bytes.

What is stripped: \\pro*nun"ci*a`tion\\ and (spelled) ones, addresses of the web, etymologies and usage labels in [brackets],
the sources' tags such as [1913 Webster], the {braces} of cross references and the accent marks inside them.
Letters written as [ae] or ['e] become those letters. An editor's insertion, "[He] proceeded", loses its brackets.
A lone word after the last sentence, the headword of the next part of the source, goes too.

The dictionary is licensed under the GNU GPL (see /usr/share/doc/dict-gcide/copyright). It is read from where Debian
installs it; neither it nor anything derived from it belongs into this repository.

Standard library only, and the `zstd` program unless --no-zst.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import unicodedata

DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}

NAMED = {
    "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "eth": "ð", "thorn": "þ", "deg": "°", "sect": "§", "para": "¶",
    "pounds": "£", "pound": "£", "root": "√", "times": "×", "divide": "÷", "min": "′", "sec": "″", "alpha": "α",
    "beta": "β", "gamma": "γ", "delta": "δ", "pi": "π", "mu": "μ", "frac12": "½", "frac14": "¼", "frac34": "¾",
    "frac13": "⅓", "frac23": "⅔", "frac18": "⅛", "frac38": "⅜", "frac58": "⅝", "frac78": "⅞", "1/2": "½",
    "1/4": "¼", "3/4": "¾", "cced": "ç", "edil": "ç", "asl": "ā", "imac": "ī", "aum": "ä", "oum": "ö", "uum": "ü",
    "eum": "ë", "ium": "ï", "aacute": "á", "eacute": "é", "add": "ạ", "udd": "ụ", "yogh": "ȝ", "prime": "′",
    "sharp": "♯", "flat": "♭", "natural": "♮", "dag": "†", "Dag": "‡", "middot": "·", "bar": "|", "th": "th",
}
ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", ",": "\u0327", "=": "\u0304",
           "-": "\u0304", ".": "\u0307", "*": ""}

LETTER = re.compile(r"\[(?:([a-zA-Z0-9/]+)|([\'`^\"~,=\-.*])([a-zA-Z]{1,2})|([a-zA-Z]{1,2})\^)\]")
SOURCE = re.compile(r"\[\+?(?:1913|Webster|WordNet|PJC|AS|RP|JC|ACW|Century|Cent|WW|RDH|RH|MW|AHD|PC|hunter|ppatent)\b[^\[\]]*\]")
PRONUNCIATION = re.compile(r"\\[^\\\n]*(?:\n[^\\\n]*)?\\(?:\s*\([^()]*\)(?=[\s,;.]))?")
SPELLED = re.compile(r"\s?\((?=[^()]*[^\W\d][\"*`][^\W\d])[^()]{1,120}\)|\(#\)")
ADDRESS = re.compile(r"\(?\S*(?:://|www\.|\.html?\b)\S*|\ba href=\S*|\S*/ex>")
BRACKET = re.compile(r"\[([^\[\]]*)\]( ?.?)", re.DOTALL)
BRACE = re.compile(r"\{([^{}]*)\}")
SPACES = re.compile(r"\s+")
BEFORE_MARK = re.compile(r"\s+([,;:.?!)])(?=\s|$)")
RUN_ON = re.compile(r"(?<=[a-z]\.) [A-Z][\w-]+$")
REPEATED_MARK = re.compile(r"([,;])(?:\s*[,;])+")


def number(digits):
    value = 0
    for digit in digits:
        value = value * 64 + DIGITS[digit]
    return value


def letter(match):
    name, accent, after, breve = match.groups()
    if name:
        return NAMED.get(name, match.group(0))
    if breve:
        return unicodedata.normalize("NFC", breve[0] + "\u0306" + breve[1:])
    return unicodedata.normalize("NFC", after[0] + ACCENTS[accent] + after[1:])


def bracket(match):
    """An editor's insertion into a quotation stays; an etymology, label or tag goes."""
    inside, following = match.groups()
    insertion = inside and not inside.endswith(".") and (following[-1:].islower() or len(following) == 1 and following.isalpha())
    return (inside if insertion else "") + following


def brace(match):
    return match.group(1).replace("*", "").replace('"', "").replace("`", "").lstrip("|").strip()


def clean(entry):
    """One entry's text on one line; empty when nothing but a headword is left."""
    text = LETTER.sub(letter, entry)
    text = SOURCE.sub(" ", text)
    text = PRONUNCIATION.sub("", text)
    text = SPACES.sub(" ", text)
    while "[" in text:
        stripped = BRACKET.sub(bracket, text)
        if stripped == text:
            break
        text = stripped
    text = BRACE.sub(brace, text)
    if '"' in text or "`" in text or "*" in text or "#" in text:
        text = SPELLED.sub("", text)
    if "/" in text or ".htm" in text or "www." in text:
        text = ADDRESS.sub("", text)
    for mark in "[]{}\\":
        text = text.replace(mark, "")
    text = SPACES.sub(" ", text.replace("||", "")).strip()
    text = REPEATED_MARK.sub(r"\1", BEFORE_MARK.sub(r"\1", text))
    text = RUN_ON.sub("", text)
    return text if len(text.split()) >= 4 else ""


def entries(dictionary, index):
    """The raw entries in the dictionary's order, each once, without the package's own notes."""
    places = set()
    for line in index.decode("utf-8", "replace").splitlines():
        headword, offset, length = line.rsplit("\t", 2)
        if not headword.startswith("00-"):
            places.add((number(offset), number(length)))
    for offset, length in sorted(places):
        yield dictionary[offset:offset + length].decode("utf-8", "replace").replace("\ufffd", "")


def is_held_out(text, threshold):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") < threshold


def split(raw_entries, fraction):
    """(train, held out): two lists of distinct cleaned entries."""
    threshold = int(fraction * 2**64)
    train, held_out, seen = [], [], set()
    for raw in raw_entries:
        text = clean(raw)
        if text and text not in seen:
            seen.add(text)
            (held_out if is_held_out(text, threshold) else train).append(text)
    return train, held_out


def write(folder, name, lines, compress):
    path = os.path.join(folder, name)
    with open(path + ".partial", "w", encoding="utf-8", newline="\n") as out:
        out.writelines(line + "\n" for line in lines)
    os.replace(path + ".partial", path)
    if compress:
        subprocess.run(["zstd", "-q", "-f", "-6", path, "-o", path + ".zst.partial"], check=True)
        os.replace(path + ".zst.partial", path + ".zst")
    return os.path.getsize(path)


def main(arguments):
    parser = argparse.ArgumentParser(description="English text from Debian's dict-gcide package")
    parser.add_argument("folder", help="where to write; made if absent")
    parser.add_argument("--dict", default="/usr/share/dictd/gcide.dict.dz", help="the dictionary (default: %(default)s)")
    parser.add_argument("--index", default="/usr/share/dictd/gcide.index", help="its index (default: %(default)s)")
    parser.add_argument("--held-out", type=float, default=0.05, help="fraction set aside (default: %(default)s)")
    parser.add_argument("--no-zst", action="store_true", help="write the plain files only")
    options = parser.parse_args(arguments)
    for path in (options.dict, options.index):
        if not os.path.exists(path):
            sys.exit(f"error: {path} is missing\n  hint: apt-get install dict-gcide")
    if not options.no_zst and not shutil.which("zstd"):
        sys.exit("error: the program zstd is missing\n  hint: apt-get install zstd, or pass --no-zst")
    if not 0 <= options.held_out < 1:
        sys.exit(f"error: --held-out is {options.held_out}, but it is a fraction from 0 up to, not including, 1")

    with gzip.open(options.dict) as file:
        dictionary = file.read()
    with open(options.index, "rb") as file:
        index = file.read()
    train, held_out = split(entries(dictionary, index), options.held_out)
    os.makedirs(options.folder, exist_ok=True)
    for name, lines in (("train.txt", train), ("held_out.txt", held_out)):
        size = write(options.folder, name, lines, not options.no_zst)
        print(f"{os.path.join(options.folder, name)}: {len(lines):,} entries, {size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
