#!/usr/bin/env python3
"""pyarrow as the other side of Parquet files.

parquet_oracle.py write FOLDER    files of every type, encoding, compression and kind of page, and some refused ones
parquet_oracle.py compare FOLDER  each FOLDER/*.parquet as pyarrow reads it with FOLDER/*.jsonl, as Systole reads it
"""

import base64
import datetime
import decimal
import itertools
import json
import pathlib
import random
import struct
import sys

import pyarrow
import pyarrow.parquet

ROWS = 400


def values_of(kind, rand):
    """A value of a type, of a few or of many."""
    few = rand.random() < 0.5
    if kind == pyarrow.bool_():
        return rand.random() < 0.7
    if pyarrow.types.is_unsigned_integer(kind):
        return rand.randrange(3 if few else 2**kind.bit_width)
    if pyarrow.types.is_integer(kind):
        return rand.randrange(3) if few else rand.randrange(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1))
    if pyarrow.types.is_float16(kind):
        return rand.randrange(-2048, 2048) / 8
    if pyarrow.types.is_floating(kind):
        value = rand.choice([0.0, -1.5, 1e30]) if few else rand.gauss(0, 1e6)
        return struct.unpack("f", struct.pack("f", value))[0] if kind == pyarrow.float32() else value
    if pyarrow.types.is_date(kind):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=rand.randrange(-20000, 30000))
    if pyarrow.types.is_time(kind):
        return (datetime.datetime(2000, 1, 1) + datetime.timedelta(milliseconds=rand.randrange(86400000))).time()
    if pyarrow.types.is_timestamp(kind):
        zone = datetime.timezone.utc if kind.tz else None
        return datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(milliseconds=rand.randrange(-(10**12), 10**13))
    if pyarrow.types.is_decimal(kind):
        return decimal.Decimal(rand.randrange(-(10**kind.precision) + 1, 10**kind.precision)).scaleb(-kind.scale)
    if pyarrow.types.is_fixed_size_binary(kind):
        return b"abc" if few else rand.randbytes(3)
    text = "a beginning and " + ("an end" if few else "é%d" % rand.randrange(10**9) * rand.randrange(4))
    return text.encode() + (b"" if few else b"\xff") if kind == pyarrow.binary() else text


KINDS = {
    "bool": pyarrow.bool_(),
    "int8": pyarrow.int8(),
    "int32": pyarrow.int32(),
    "int64": pyarrow.int64(),
    "uint16": pyarrow.uint16(),
    "uint32": pyarrow.uint32(),
    "uint64": pyarrow.uint64(),
    "float16": pyarrow.float16(),
    "float32": pyarrow.float32(),
    "float64": pyarrow.float64(),
    "date": pyarrow.date32(),
    "time": pyarrow.time64("us"),
    "ms": pyarrow.timestamp("ms"),
    "us": pyarrow.timestamp("us", tz="UTC"),
    "dec5": pyarrow.decimal128(5, 2),
    "dec30": pyarrow.decimal128(30, 7),
    "fixed": pyarrow.binary(3),
    "text": pyarrow.string(),
    "bytes": pyarrow.binary(),
}

# Where a type has none of these, the file is left out.
ENCODINGS = {
    "PLAIN": lambda k: True,
    "DICTIONARY": lambda k: True,
    "RLE": lambda k: k == pyarrow.bool_(),
    "DELTA_BINARY_PACKED": lambda k: pyarrow.types.is_integer(k) or pyarrow.types.is_temporal(k),
    "DELTA_LENGTH_BYTE_ARRAY": lambda k: k in (pyarrow.string(), pyarrow.binary()),
    "DELTA_BYTE_ARRAY": lambda k: k in (pyarrow.string(), pyarrow.binary()) or pyarrow.types.is_fixed_size_binary(k),
    "BYTE_STREAM_SPLIT": lambda k: pyarrow.types.is_integer(k) or k in (pyarrow.float32(), pyarrow.float64(), pyarrow.binary(3)),
}


def table_of(kinds, rand):
    columns, fields = [], []
    for name, kind in kinds.items():
        def some(null, kind=kind):
            return None if null and rand.random() < 0.2 else values_of(kind, rand)
        def items(kind=kind):
            return [some(True, kind) for _ in range(rand.randrange(5))]
        columns.append([some(False) for _ in range(ROWS)])
        fields.append(pyarrow.field(name, kind, nullable=False))
        columns.append([some(True) for _ in range(ROWS)])
        fields.append(pyarrow.field(name + "_null", kind))
        columns.append([None if rand.random() < 0.1 else items() for _ in range(ROWS)])
        fields.append(pyarrow.field(name + "_list", pyarrow.list_(kind)))
    arrays = [pyarrow.array(c, f.type) for c, f in zip(columns, fields)]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))


def write(folder):
    rand = random.Random(1)
    tables = {e: table_of({n: k for n, k in KINDS.items() if fits(k)}, rand) for e, fits in ENCODINGS.items()}
    choices = itertools.product(ENCODINGS, ["NONE", "SNAPPY", "GZIP", "ZSTD"], ["1.0", "2.0"])
    for number, (encoding, codec, version) in enumerate(choices):
        table = tables[encoding]
        options = {}
        if encoding != "DICTIONARY":
            paths = [f.name + (".list.element" if pyarrow.types.is_list(f.type) else "") for f in table.schema]
            options = {"use_dictionary": False, "column_encoding": {p: encoding for p in paths}}
        pyarrow.parquet.write_table(
            table, folder / f"{encoding}-{codec}-{version}.parquet", compression=codec, data_page_version=version,
            data_page_size=1000, write_batch_size=50, row_group_size=150, write_page_checksum=number % 2 == 0,
            store_schema=False, **options)
    (folder / "refused").mkdir(exist_ok=True)
    text = pyarrow.array(["a", "b"])
    pyarrow.parquet.write_table(pyarrow.table({"text": text}), folder / "refused/brotli.parquet", compression="BROTLI")
    nested = pyarrow.table({"text": text, "who": pyarrow.array([{"name": "x"}, {"name": "y"}]),
                            "tags": pyarrow.array([[["a"]], []])})
    pyarrow.parquet.write_table(nested, folder / "refused/nested.parquet")


def shown(kind, value):
    """What Systole prints for a value, as Python's json reads that."""
    if value is None:
        return None
    if pyarrow.types.is_list(kind):
        return [shown(kind.value_type, item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        text = value.isoformat(timespec="milliseconds" if kind.unit == "ms" else "microseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if kind == pyarrow.float32():
        return struct.pack("f", value)
    return value


def read_as(kind, value):
    if value is None:
        return None
    if pyarrow.types.is_list(kind):
        return [read_as(kind.value_type, item) for item in value]
    if kind == pyarrow.float32():
        return struct.pack("f", float(value))
    if pyarrow.types.is_floating(kind):
        return float(value)
    return value


def compare(folder):
    files = 0
    for path in sorted(folder.glob("*.parquet")):
        table = pyarrow.parquet.read_table(path)
        lines = path.with_suffix(".jsonl").read_text().splitlines()
        rows = table.to_pylist()
        if len(lines) != len(rows):
            sys.exit(f"{path}: pyarrow has {len(rows)} rows, Systole {len(lines)}")
        for number, (line, row) in enumerate(zip(lines, rows)):
            ours = json.loads(line, parse_float=decimal.Decimal)
            for field in table.schema:
                theirs, mine = shown(field.type, row[field.name]), read_as(field.type, ours[field.name])
                if theirs != mine:
                    sys.exit(f"{path}: row {number}, column {field.name}: pyarrow has {theirs!r}, Systole {mine!r}")
        files += 1
    print(files)


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
