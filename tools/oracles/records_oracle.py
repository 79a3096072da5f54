"""Files of records by other hands than Systole's, for formats_oracle_test.

  records_oracle.py write FOLDER     items.bin -> theirs.*: by array_record, and TFRecord by its layout
  records_oracle.py check FOLDER     ours.*: the same items; exits with 1 and says which file differs

items.bin: for each item a little-endian u32 with its size, then its bytes.
"""
import glob
import gzip
import struct
import sys
import zlib

from array_record.python import array_record_module as ar

TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    TABLE.append(crc)

OPTIONS = {  # file -> options of array_record's writer
    "plain-1": "group_size:1,uncompressed,max_parallelism:1",
    "plain-3": "group_size:3,uncompressed,max_parallelism:1",
    "plain-3-padded": "group_size:3,uncompressed,pad_to_block_boundary:true,max_parallelism:1",
    "zstd-1": "group_size:1,zstd:3,max_parallelism:1",
    "zstd-256": "group_size:256,zstd:3,max_parallelism:1",
}


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(items):
    framed = []
    for item in items:
        size = struct.pack("<Q", len(item))
        framed += [size, masked(size), item, masked(item)]
    return b"".join(framed)


def items_of(folder):
    data, at, items = open(folder + "/items.bin", "rb").read(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        items.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return items


def write(folder):
    items = items_of(folder)
    for name, options in OPTIONS.items():
        writer = ar.ArrayRecordWriter(f"{folder}/theirs-{name}.array_record", options)
        for item in items:
            writer.write(item)
        writer.close()
    for name, bad in (("transposed", "transpose:true"), ("brotli", "brotli:3"), ("snappy", "snappy")):
        writer = ar.ArrayRecordWriter(f"{folder}/refused-{name}.array_record", f"group_size:4,max_parallelism:1,{bad}")
        for _ in range(64):
            writer.write(b"hello hello hello hello hello hello hello hello")
        writer.close()
    framed = tfrecord(items)
    open(folder + "/theirs.tfrecord", "wb").write(framed)
    open(folder + "/theirs.tfrecord.gz", "wb").write(gzip.compress(framed))
    open(folder + "/theirs-zlib.tfrecord", "wb").write(zlib.compress(framed))


def check(folder):
    items, framed = items_of(folder), tfrecord(items_of(folder))
    for path in sorted(glob.glob(folder + "/ours*.array_record")):
        reader = ar.ArrayRecordReader(path)
        if reader.read_all() != items or reader.read([0, len(items) - 1]) != [items[0], items[-1]]:
            sys.exit(f"{path} differs")
    unpacks = {"ours.tfrecord": bytes, "ours-gzip.tfrecord": gzip.decompress, "ours-zlib.tfrecord": zlib.decompress}
    for name, unpack in unpacks.items():
        if unpack(open(f"{folder}/{name}", "rb").read()) != framed:
            sys.exit(f"{name} differs")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
