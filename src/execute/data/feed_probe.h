#pragma once
// Measures how fast this machine prepares a text and feeds its rows to training, on the real path: the same readers,
// tokenizer, shards and reader of rows.
//
// Preparing happens once. Its stages are timed apart, on the first files of each kind, one thread:
//   open        of a file, with the look at its size and first bytes
//   read        the calls of the store, pages dropped before if that is possible ("cold")
//   decompress  of gzip and zstd; of files of records it is part of decode
//   decode      documents out of bytes: lines, JSON, records, UTF-8
//   tokenize    documents to tokens
//   pack        tokens to a shard and its packing table, without the disk
// Feeding happens in every step: rows out of the shards, by 1, 2, 4 and 8 threads.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/build.h"
#include "execute/data/rows.h"
#include "ground/base/clock.h"

namespace systole {

// The files of one kind, and what was measured on the first of them.
struct SourceProbe {
  std::string kind;         // "jsonl, zstd"
  std::int64_t files = 0;   // of this kind
  Bytes size;               // of all of them
  std::int64_t opened = 0;  // of the files, to measure
  Bytes read, text;         // of what was measured: of the files, of the documents in them
  std::int64_t documents = 0, tokens = 0;
  Bytes encoded;                                        // of the documents' text that was tokenized: at most some MiB
  bool cold = false;                                    // read from the storage, not from the system's cache
  std::vector<std::pair<std::string, Seconds>> stages;  // seconds per byte of text; a stage that is absent: unknown
};

struct ReaderProbe {
  std::int64_t readers = 1;
  double rows_per_second = 0;  // of a consumer that takes no time
  Seconds processor;           // of a row
  Seconds longest;             // between two batches
  bool cold = false;
};

struct ShardProbe {
  std::vector<ReaderProbe> readers;  // cold ones, where pages can be dropped, and warm ones
  BytesPerSecond read{0};            // of shards, in order
  bool cold = false;                 // that rate
  Bytes size;                        // of the shards
  double row_bytes = 0;              // that a row takes of the shards, on average
  std::int64_t batch_rows = 1;       // of the batches that were read
};

struct FeedProbeOptions {
  Seconds budget{2.5};  // about so long, for each of the two
  std::int64_t most_readers = 8;
};

// REQUIRES: options.train names files. Without a tokenizer the stages from tokenize on are unknown. Errors: those of
// TextReader.
Result<std::vector<SourceProbe>> probe_sources(const BuildOptions& options, const Tokenizer* tokenizer, Clock& clock,
                                               const FeedProbeOptions& how);

// `paths`: of the shards, for the system. `rows`: how training reads them. Errors: those of RowReader.
Result<ShardProbe> probe_rows(std::shared_ptr<const PackedTokens> data, const std::vector<std::string>& paths,
                              const RowReaderOptions& rows, Clock& clock, const FeedProbeOptions& how);

}  // namespace systole
