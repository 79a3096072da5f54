#pragma once
// Shards of a batch, for several processes or machines: shard I of N has the rows whose index is I modulo N, and a file and
// a journal of its own. Once all are finished, their lines are joined in the order of the rows.
//
//   answers.jsonl       answers.0-of-3.jsonl  answers.1-of-3.jsonl  answers.2-of-3.jsonl

#include <cstddef>
#include <string>
#include <string_view>

#include "execute/serve/batch/batch_journal.h"

namespace systole {

inline constexpr std::size_t kMostShards = 10'000;

struct BatchShard {
  std::size_t index = 0, count = 1;  // usually the whole batch

  bool has(std::size_t row) const { return row % count == index; }
  std::size_t rows(std::size_t all) const { return (all + count - 1 - index) / count; }  // of so many
  std::size_t place(std::size_t row) const { return row / count; }                       // among its own
  std::size_t row(std::size_t place) const { return place * count + index; }
};

// "0/3": the first of three. Errors: invalid.
Result<BatchShard> parse_batch_shard(std::string_view text);
std::string to_string(const BatchShard& shard);
// "answers.0-of-3.jsonl" of "answers.jsonl".
std::string shard_file(const std::string& output, const BatchShard& shard);

// How many shards the output has, by the files in its folder, of which some may be missing. Errors: not_found: there is
// no such file; invalid: files of two numbers of shards, or one that is none of them, naming it; those of the store.
Result<std::size_t> find_shards(Store& store, const std::string& output);

// Takes the lines of a finished shard's file into the journal of the whole batch, of `rows` rows, but for those that it
// has. `totals`: of the shard's journal. Errors: corrupt: the file has other lines than the rows of the shard; those of
// the store and the journal, which can be opened again.
Status join_shard(const BatchOutput& file, const BatchShard& shard, std::size_t rows, const BatchTotals& totals,
                  BatchJournal& whole);

}  // namespace systole
