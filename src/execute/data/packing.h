#pragma once
// The packing table: which pieces of which documents are in which row.
//
// A document of tokens t0 .. tn (eos last) is cut into pieces of at most T tokens, T the row length. A piece of n
// tokens takes n positions of one row: the model reads [bos, t0, .., t(n-2)] and predicts [t0, .., t(n-1)]. So every
// token of every document is predicted exactly once; the first token of a document and of each later piece is predicted
// from bos alone; bos is never predicted; no label crosses a piece. The negative log likelihood summed over all rows is
// that of the whole text, and any packing of the same pieces gives the same sum: training and evaluation share this
// scheme. Positions after the last piece are padding: token 0, label -1, segment 0.
//
// `packed` fills rows by best-fit decreasing within windows of 65,536 pieces: the longest piece first, into the fullest
// row that still has room; ties by order. Deterministic, O(pieces x T / 64). `padded` gives each piece its own row.
//
// File format, little-endian; hashes as in token_shard.h:
//   header, 128 bytes
//     0   8  "SYSPACKS"       8   4  version, 1        12   4  policy: 0 packed, 1 padded
//    16   8  row length T    24   8  rows              32   8  pieces
//    40   8  tokens          48   8  bytes of text     56  16  hash of the inputs (packing_inputs), high half first
//    72   8  hash of the tables                        80  40  zeros
//   120   8  hash of bytes 0..119
//   per row, and once more at the end: 8  index of its first piece
//   per piece: 8 first token, counted over all shards   4 tokens   4 bytes of text

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/data/token_shard.h"
#include "execute/data/tokenizer.h"

namespace systole {

enum class PackingPolicy { packed, padded };
const char* name_of(PackingPolicy policy);

struct Piece {
  std::uint64_t token = 0;   // its first token, counted over all shards
  std::uint32_t length = 0;  // tokens, 1 .. T
  std::uint32_t bytes = 0;   // of text; a document's separator counts with its last piece
  bool operator==(const Piece&) const = default;
};

struct Packing {
  PackingPolicy policy = PackingPolicy::packed;
  std::int64_t sequence_length = 0;
  Hash128 inputs;
  std::vector<std::uint64_t> first{0};  // index of each row's first piece; one more at the end
  std::vector<Piece> pieces;            // row after row
  std::int64_t tokens = 0, bytes = 0;   // of all pieces

  std::int64_t rows() const { return static_cast<std::int64_t>(first.size()) - 1; }
  std::int64_t padding() const { return rows() * sequence_length - tokens; }  // positions that predict nothing
  std::span<const Piece> row(std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return std::span(pieces).subspan(first[i], first[i + 1] - first[i]);
  }
  Bytes resident() const;
  bool operator==(const Packing&) const = default;
};

// The table's name: a hash of everything that it depends on.
Hash128 packing_inputs(std::span<const ShardInfo> shards, std::int64_t sequence_length, PackingPolicy policy);

// The row of each piece. Rows are numbered from 0 in the order they were opened.
// REQUIRES: 1 <= length <= sequence_length.
std::vector<std::uint32_t> best_fit_rows(std::span<const std::uint32_t> lengths, std::int64_t sequence_length,
                                         std::size_t window = 65536);

// The table for all documents of the shards. REQUIRES: sequence_length >= 1, shards opened with their documents.
// Errors: those of TokenShard::read; invalid if a piece stands for 4 GiB of text or more.
Result<Packing> pack(std::span<const TokenShard> shards, const Tokenizer& tokenizer, std::int64_t sequence_length,
                     PackingPolicy policy);

std::vector<std::byte> serialise(const Packing& packing);
// Errors: corrupt; unsupported (a newer version). `name`: the file's name, for messages.
Result<Packing> parse_packing(std::span<const std::byte> bytes, const std::string& name);

}  // namespace systole
