#pragma once
// MDS, the shards of mosaicml-streaming: a folder with index.json and shard files of
//
//   u32 samples · u32 offsets[samples + 1] · the columns as JSON · the samples
//
// where a sample is the u32 sizes of its columns of variable size, then the columns' bytes, in the order of their names.
// A shard may be compressed as a whole (.zstd, .gz); others (br, bz2, snappy) are refused by name.
//
// field(): the column's bytes; numbers (int, int8 to float64) as decimal text. A column of pickles is refused: reading one
// runs what it says. There is an index, 4 bytes a sample of the shards that were read. A plain shard has no checksum; its
// size and offsets are checked against the index. The index's optional hashes are not checked.

#include <memory>
#include <utility>

#include "execute/data/byte_stream.h"
#include "execute/data/formats/record.h"

namespace systole {

// Whether a path is one of a shard: .mds, .mds.zstd, .mds.gz.
bool is_mds_name(std::string_view path);

// `file.path` is the folder, its index.json, or one shard, which is complete without them. A compressed shard is held in memory while it is read (at most 4 GiB).
// Errors: not_found (no index.json), io; invalid, corrupt, unsupported: the index.
Result<std::unique_ptr<RecordReader>> open_mds(const RecordFile& file, const RecordLimits& limits = {});

struct MdsOptions {
  // Name and encoding (bytes, str, json, jpeg, png, int, float64, ...). Empty: the first record's fields, as bytes.
  std::vector<std::pair<std::string, std::string>> columns;
  Compression compression = Compression::none;  // or zstd
  std::int64_t shard_bytes = std::int64_t{1} << 26;
};

// Writes into `folder`, which is made if absent; index.json comes last, and without it there is no dataset. What a writer
// that was killed left there, with its mark .systole-unfinished, is removed. The bytes are those of streaming's MDSWriter.
// Every record has all columns; numbers are given as decimal text.
// Errors: exists (index.json or another file is there), invalid, unsupported (a column), as Store::create.
Result<std::unique_ptr<RecordWriter>> create_mds(Store& store, const std::string& folder, MdsOptions options = {});

}  // namespace systole
