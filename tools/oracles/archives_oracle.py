#!/usr/bin/env python3
"""webdataset, mosaicml-streaming and numpy beside our readers and writers (src/execute/data/formats).

  archives_oracle.py write FOLDER   the same samples by each library: w.tar, mds/, a.npy, ...; prints NAME HASH of each
  archives_oracle.py read FOLDER    reads what we wrote there, ours.tar, ours/, ...; prints NAME HASH of each
"""

import hashlib
import importlib.machinery
import os
import sys
import types


class Absent(types.ModuleType):
    """Streaming imports clouds and torch, which reading and writing a folder never calls."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(name)

    def __call__(self, *arguments, **named):
        return self


class AbsentFinder:
    names = {
        "torch", "boto3", "botocore", "google", "azure", "oci", "paramiko", "huggingface_hub", "databricks", "snappy",
        "brotli", "filelock", "transformers", "torchvision", "catalogue", "psutil", "requests",
    }

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = Absent(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def mds():
    sys.meta_path.insert(0, AbsentFinder())
    base = next(folder for folder in sys.path if os.path.isdir(os.path.join(folder, "streaming")))
    for name in ("streaming", "streaming.base", "streaming.base.storage"):
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(base, *name.split("."))]
        sys.modules[name] = module
    from streaming.base.format.mds import MDSReader, MDSWriter

    return MDSReader, MDSWriter


def samples():
    for i in range(300):
        text = ("wörd%d " % (i * 7919 % 1000)) * (i * 31 % 200)
        yield {"id": i - 20, "score": i / 7.0, "text": text, "meta": {"lang": ["en", "de"][i % 2], "n": [i, i + 1]}}


def hash_of(rows):
    digest = hashlib.sha256()
    for row in rows:
        for value in row:
            digest.update(len(value).to_bytes(8, "little") + value)
    return digest.hexdigest()


def write(folder):
    import json

    import numpy as np
    import webdataset as wds

    for name in ("w.tar", "w.tar.gz"):
        rows = []
        with wds.TarWriter(os.path.join(folder, name), mtime=0, encoder=False) as out:
            for i, one in enumerate(samples()):
                key = "part/%06d" % i if i % 50 else "d" * 120 + "/%06d" % i  # beyond 100 bytes: a pax header
                row = (key.encode(), json.dumps(one["meta"]).encode(), one["text"].encode())
                rows.append(row)
                out.write({"__key__": key, "json": row[1], "txt": row[2]})
        print(name, hash_of(rows))
    _, writer = mds()
    columns = {"id": "int", "score": "float64", "text": "str", "meta": "json"}
    for name, compression in (("mds", None), ("packed", "zstd")):
        with writer(columns=columns, out=os.path.join(folder, name), compression=compression, size_limit=20000) as out:
            for one in samples():
                out.write(one)
        print(name, hash_of((str(one["id"]).encode(), one["text"].encode()) for one in samples()))
    array = np.arange(60, dtype="<i4").reshape(10, 2, 3)
    np.save(os.path.join(folder, "a.npy"), array)
    np.save(os.path.join(folder, "texts.npy"), np.array(["one", "zwölf", ""]))
    print("a.npy", hash_of((row.tobytes(),) for row in array))
    print("texts.npy", hash_of((text.encode(),) for text in ["one", "zwölf", ""]))
    second = array[:, 0, 0].astype("<f8")
    for name in ("a.npz", "packed.npz"):
        print(name, hash_of((x.tobytes(), y.tobytes()) for x, y in zip(array, second)))
    np.savez(os.path.join(folder, "a.npz"), x=array, y=second)
    np.savez_compressed(os.path.join(folder, "packed.npz"), x=array, y=second)


def read(folder):
    import json

    import webdataset as wds

    for name in ("ours.tar", "ours.tar.gz"):
        found = wds.WebDataset(os.path.join(folder, name), shardshuffle=False)
        print(name, hash_of((one["__key__"].encode(), one["json"], one["txt"]) for one in found))
    reader, _ = mds()
    for name in ("ours", "ours_packed"):
        with open(os.path.join(folder, name, "index.json")) as file:
            index = json.load(file)
        rows = []
        for shard in index["shards"]:
            if shard["zip_data"]:
                import zstd

                raw, packed = shard["raw_data"]["basename"], shard["zip_data"]["basename"]
                with open(os.path.join(folder, name, packed), "rb") as file:
                    data = zstd.decompress(file.read())
                with open(os.path.join(folder, name, raw), "wb") as file:
                    file.write(data)
            one = reader.from_json(folder, name, shard)
            rows += [one[i] for i in range(one.samples)]
        print(name, hash_of((str(row["id"]).encode(), row["text"].encode()) for row in rows))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
