#pragma once
// ArrayRecord (github.com/google/array_record, cpp/layout.proto): a Riegeli file (riegeli.h) with an index at its end.
//
//   chunks of records, `group_size` records in each but the last
//   footer: a simple chunk at the file's last block boundary but one or more. Its record 0 is RiegeliFooterMetadata
//     { ArrayRecordMetadata array_record_metadata = 1
//         { version = 1, num_chunks = 2, num_records = 3, writer_options = 4 } },
//     then for each chunk an ArrayRecordFooter { chunk_offset = 1, decoded_data_size = 2, num_records = 3 }
//   postscript: the last 64 KiB, a simple chunk of three equal RiegeliPostscript { footer_offset = 1, magic = 2 }
//
// Simple chunks, uncompressed or by zstd, are read; transposed ones, Brotli and Snappy are refused by name. Every byte
// that carries something is covered by a hash; padding is not.

#include <memory>

#include "execute/data/formats/record.h"

namespace systole {

// Has an index: 8 bytes a chunk in memory. read() decodes a whole chunk, and keeps the last one; read_group() decodes
// each chunk once. A damaged chunk is an error for each of its records. `limits` bounds a record; a chunk is bounded by
// 1 GiB. field(): as bytes_of_example (example.h).
// Errors: not_found, io; corrupt (damaged or truncated); invalid (no ArrayRecord, by its end); unsupported (another
// version).
Result<std::unique_ptr<RecordReader>> open_array_record(const RecordFile& file, const RecordLimits& limits = {});

struct ArrayRecordOptions {
  std::int64_t group_size = 1;  // records in a chunk: 1 for random access, hundreds to be read in order
  int zstd_level = 3;           // 0: uncompressed
  bool pad_to_block_boundary = false;
};

// add_fields() writes a tf.train.Example. REQUIRES: group_size >= 1, 0 <= zstd_level <= 22. Errors: as Store::create.
Result<std::unique_ptr<RecordWriter>> create_array_record(Store& store, const std::string& path,
                                                          const ArrayRecordOptions& options = {});

constexpr std::uint64_t kArrayRecordMagic = 0x71930e704fdae05e;

}  // namespace systole
