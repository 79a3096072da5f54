"""A library that reads records, or encodes texts, for Systole to be timed against: data_peers.py LIBRARY FOLDER

It prints {"ready": true}, and answers each line, a way and a file's name, by {"records": n, "bytes": n, "seconds": s}.
The files are those that data_bench made in FOLDER. A slow library reads a part of their records.

  data_peers.py tokenizers-train FOLDER     makes texts.bin of this tree's own files, and trains tokenizers on them
"""
import io
import itertools
import json
import math
import os
import random
import struct
import sys
import time

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "",
               "TOKENIZERS_PARALLELISM": "false"}
HERE = os.path.dirname(os.path.abspath(__file__))
ORACLES = os.path.join(HERE, "..", "tools", "oracles")
RECORDS, GROUP, PART, VOCABULARY = 65536, 256, 8192, 8000


def shuffled(count=RECORDS):
    order = list(range(count))
    random.Random(5).shuffle(order)
    return order


def of(records):
    """Records and bytes of what is iterated."""
    count = size = 0
    for record in records:
        count += 1
        size += len(record)
    return count, size


def array_record(folder):
    from array_record.python.array_record_module import ArrayRecordReader

    def order(name):
        def records():
            reader = ArrayRecordReader(f"{folder}/{name}.array_record", "max_parallelism:0")
            return (reader.read() for _ in range(reader.num_records()))

        return lambda: of(records())

    def opened(name):
        return ArrayRecordReader(f"{folder}/{name}.array_record", "readahead_buffer_size:0,max_parallelism:0")

    def one_by_one(name):
        reader, indices = opened(name), shuffled()

        def each():
            for index in indices:
                reader.seek(index)
                yield reader.read()

        return lambda: of(each())

    def batch(name):
        reader, indices = opened(name), shuffled()
        return lambda: of(itertools.chain.from_iterable(
            reader.read(indices[i : i + GROUP]) for i in range(0, len(indices), GROUP)))

    return {"order": order, "random": one_by_one, "batch": batch}


def grain(folder):
    import grain as library

    source = library.sources.ArrayRecordDataSource(f"{folder}/zstd-1.array_record")

    def dataset(_):
        shuffled_source = library.MapDataset.source(source).shuffle(seed=1)
        return lambda: of(shuffled_source[i] for i in range(PART))

    def loader(_):
        def batches():
            made = library.DataLoader(
                data_source=source, worker_count=0, operations=[library.transforms.Batch(GROUP)],
                sampler=library.samplers.IndexSampler(RECORDS, shuffle=True, seed=1, num_epochs=1,
                                                      shard_options=library.sharding.NoSharding()))
            return itertools.islice(made, PART // GROUP)

        return lambda: of(itertools.chain.from_iterable(batches()))

    return {"dataset": dataset, "loader": loader}


def tensorflow(folder):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    files = tf.data.TFRecordDataset(f"{folder}/words.tfrecord")
    batches = files.batch(GROUP)
    return {"one": lambda _: lambda: of(itertools.islice(files.as_numpy_iterator(), PART)),
            "batch": lambda _: lambda: of(itertools.chain.from_iterable(batches.as_numpy_iterator()))}


def webdataset(folder):
    import webdataset as wds

    return {"order": lambda name: lambda: of(
        one["txt"] for one in itertools.islice(wds.WebDataset(f"{folder}/{name}", shardshuffle=False), 2 * PART))}


def pyarrow(folder):
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def table(_):
        def read():
            column = pa.parquet.read_table(f"{folder}/words.parquet", use_threads=False).column(0)
            return len(column), sum(pa.compute.sum(pa.compute.binary_length(chunk)).as_py() for chunk in column.chunks)

        return read

    def each(_):
        def records():
            for batch in pa.parquet.ParquetFile(f"{folder}/words.parquet").iter_batches(4096, use_threads=False):
                yield from map(memoryview, (value.as_buffer() for value in batch.column(0)))

        return lambda: of(records())

    def csv(_):
        def read():
            options = pa.csv.ReadOptions(use_threads=False)
            column = pa.csv.read_csv(f"{folder}/words.csv", read_options=options).column(0)
            return len(column), sum(pa.compute.sum(pa.compute.binary_length(chunk)).as_py() for chunk in column.chunks)

        return read

    return {"table": table, "each": each, "csv": csv}


def streaming(folder):
    """Its reader of shards, which StreamingDataset calls: without PyTorch, and faster than the whole."""
    sys.path.insert(0, ORACLES)
    import archives_oracle

    reader, _ = archives_oracle.mds()

    def opened():
        with open(f"{folder}/mds/index.json", encoding="utf-8") as file:
            return [reader.from_json(folder, "mds", shard) for shard in json.load(file)["shards"]]

    def order(_):
        return lambda: of(shard[i]["txt"] for shard in opened() for i in range(shard.samples))

    def one_by_one(_):
        shards = opened()
        places = [(shard, i) for shard in shards for i in range(shard.samples)]
        random.Random(5).shuffle(places)
        return lambda: of(shard[i]["txt"] for shard, i in places)

    return {"order": order, "random": one_by_one}


def tokenizers(folder):
    import tokenizers as library

    def encode(name):
        tokenizer = library.Tokenizer.from_file(f"{folder}/{name}.json")
        texts = texts_of(folder)
        size = sum(len(text.encode()) for text in texts)

        def run():
            tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            return len(texts), size

        return run

    return {"bpe": encode}


def pillow(folder):
    """What torchvision's transforms of Pillow's images do, with numpy in the place of its tensors."""
    import numpy as np
    from PIL import Image

    mean, deviation = (np.array(three, "f4")[:, None, None] for three in ((.485, .456, .406), (.229, .224, .225)))
    photos = parts_of(f"{folder}/photos.bin")
    choices = random.Random(5)

    def crop(image):
        width, height = image.size
        for _ in range(10):
            area = width * height * choices.uniform(.08, 1)
            ratio = math.exp(choices.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                x, y = choices.randint(0, width - w), choices.randint(0, height - h)
                return image.crop((x, y, x + w, y + h))
        return image

    def decode(photo):
        image = Image.open(io.BytesIO(photo))
        image.load()
        return image

    def train(photo):
        image = crop(decode(photo)).resize((224, 224), Image.Resampling.BILINEAR)
        if choices.random() < .5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        levels = np.asarray(image).transpose(2, 0, 1).astype("f4")
        return np.ascontiguousarray((levels / np.float32(255) - mean) / deviation)

    def four_epochs(step):
        def run():
            for photo in 4 * photos:
                step(photo)
            return 4 * len(photos), 4 * sum(map(len, photos))

        return run

    return {"decode": lambda _: four_epochs(decode), "train": lambda _: four_epochs(train)}


def parts_of(path):
    with open(path, "rb") as file:
        parts = []
        while head := file.read(4):
            parts.append(file.read(struct.unpack("<I", head)[0]))
        return parts


def texts_of(folder):
    return [text.decode() for text in parts_of(f"{folder}/texts.bin")]


def train(folder):
    sys.path.insert(0, ORACLES)
    import make_tokenizers

    with open(f"{folder}/texts.bin", "wb") as file:
        trees = [os.walk(os.path.join(HERE, "..", name)) for name in ("src", "docs")]
        for root, _, names in sorted(itertools.chain(*trees)):
            for name in sorted(names):
                if not name.endswith((".cc", ".h", ".md")):
                    continue
                with open(os.path.join(root, name), "rb") as one:
                    text = one.read().decode(errors="replace").encode()
                file.write(struct.pack("<I", len(text)) + text)
    for name, tokenizer in make_tokenizers.make(texts_of(folder)[::4], VOCABULARY).items():
        tokenizer.save(f"{folder}/{name}.json", pretty=False)


LIBRARIES = {library.__name__: library for library in
             (array_record, grain, tensorflow, webdataset, pyarrow, streaming, tokenizers,
              pillow)}


def main():
    if sys.argv[1] == "tokenizers-train":
        return train(sys.argv[2])
    ways = LIBRARIES[sys.argv[1]](sys.argv[2])
    prepared = {}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        how, name = line.split()
        if line not in prepared:
            prepared[line] = ways[how](name)
        begin = time.perf_counter()
        records, size = prepared[line]()
        print(json.dumps({"records": records, "bytes": size, "seconds": time.perf_counter() - begin}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
