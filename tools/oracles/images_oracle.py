#!/usr/bin/env python3
"""Pillow beside our decoders and resizes (src/execute/data/images).

  images_oracle.py FOLDER   of each file there but *.txt: prints NAME HASH of its pixels, gray or RGB, then
                            NAME-WxH HASH of its resize to the sizes that FOLDER/sizes.txt lists
"""
import hashlib
import os
import sys

from PIL import Image


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "sizes.txt"), encoding="utf-8") as file:
        sizes = [tuple(map(int, line.split("x"))) for line in file.read().split()]
    for name in sorted(os.listdir(folder)):
        if name.endswith(".txt"):
            continue
        image = Image.open(os.path.join(folder, name))
        image = image.convert("L" if image.mode in ("L", "LA") else "RGB")
        print(name, hashlib.sha256(image.tobytes()).hexdigest())
        for width, height in sizes:
            resized = image.resize((width, height), Image.Resampling.BILINEAR)
            print(f"{name}-{width}x{height}", hashlib.sha256(resized.tobytes()).hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
