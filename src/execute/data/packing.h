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
// `bucketed` does so too, and sorts the rows by bucket (describe/lengths/bucket_edges.h): a row is in the bucket of the
// least edge that holds its piece, so that it can be read as a row of that length; within a bucket rows are in the
// order of the text. A bucket without rows is left out. Edges that are given may end below T: longer pieces are in a
// bucket of edge T.
//
// File format, little-endian; hashes as in token_shard.h:
//   header, 128 bytes
//     0   8  "SYSPACKS"       8   4  version           12   4  policy: 0 packed, 1 padded, 2 bucketed
//    16   8  row length T    24   8  rows              32   8  pieces
//    40   8  tokens          48   8  bytes of text     56  16  hash of the inputs (packing_inputs), high half first
//    72   8  hash of the tables                        80  16  bucketed: hash of the edges asked for; else zeros
//    96   8  buckets; 0 if not bucketed               104  16  zeros
//   120   8  hash of bytes 0..119
//   per row, and once more at the end: 8  index of its first piece; not packed: 0, 1, .. (not kept in memory)
//   per piece: 8 first token, counted over all shards   4 tokens   4 bytes of text
//   per bucket, ascending: 8 edge   8 its first row
// The version is 2 if bucketed, else 1, as tables were written before there were buckets.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/lengths/length_histogram.h"
#include "execute/data/token_shard.h"
#include "execute/data/tokenizer.h"

namespace systole {

enum class PackingPolicy { packed, padded, bucketed };
const char* name_of(PackingPolicy policy);

// Which buckets a table is to have.
struct EdgesAsked {
  std::vector<std::int64_t> edges = {};  // ascending, from 1 to T; empty: the best ones, by the rest:
  double waste = 0;                      // as few as keep the share of padding to it
  std::int64_t shapes = 1, align = 8;    // at most so many; each a multiple, or T
  Hash128 hash() const;
};

// The edges for pieces of these lengths: those asked for, or the best ones; T last, so that each piece has a bucket.
// REQUIRES: no piece longer than T; edges as EdgesAsked says.
std::vector<std::int64_t> bucket_edges(const LengthHistogram& pieces, std::int64_t sequence_length,
                                       const EdgesAsked& asked);

// How rows are made. A policy alone asks for no edges of its own.
struct PackingRule {
  PackingRule(PackingPolicy way) : policy(way) {}  // NOLINT(google-explicit-constructor)
  static PackingRule bucketed(EdgesAsked edges);
  PackingRule of_held_out() const;  // a pass is in stored order and of one length: padded in place of bucketed
  Hash128 asked() const { return policy == PackingPolicy::bucketed ? edges.hash() : Hash128(); }

  PackingPolicy policy;
  EdgesAsked edges;  // of bucketed
};

struct Piece {
  std::uint64_t token = 0;   // its first token, counted over all shards
  std::uint32_t length = 0;  // tokens, 1 .. T
  std::uint32_t bytes = 0;   // of text; a document's separator counts with its last piece
  bool operator==(const Piece&) const = default;
};

struct RowBucket {
  std::int64_t edge = 0, first_row = 0;
  bool operator==(const RowBucket&) const = default;
};

struct Packing {
  PackingPolicy policy = PackingPolicy::packed;
  std::int64_t sequence_length = 0;
  Hash128 inputs, asked;                // asked: PackingRule::asked()
  std::vector<RowBucket> buckets;       // of bucketed, ascending, each with rows
  std::vector<std::uint64_t> first{0};  // of packed: index of each row's first piece; one more at the end
  std::vector<Piece> pieces;            // row after row
  std::int64_t tokens = 0, bytes = 0;   // of all pieces

  bool one_each() const { return policy != PackingPolicy::packed; }  // a row is one piece
  std::int64_t rows() const { return static_cast<std::int64_t>(one_each() ? pieces.size() : first.size() - 1); }
  std::int64_t positions() const;                                // of all rows, each as long as its bucket's edge, or T
  std::int64_t padding() const { return positions() - tokens; }  // positions that predict nothing
  std::int64_t bucket_rows(std::size_t bucket) const;
  std::vector<std::int64_t> edges() const;  // lengths that rows are read in: of the buckets; T if not bucketed
  std::span<const Piece> row(std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return one_each() ? std::span(pieces).subspan(i, 1) : std::span(pieces).subspan(first[i], first[i + 1] - first[i]);
  }
  Bytes resident() const;
  bool operator==(const Packing&) const = default;
};

// The table's name: a hash of everything that it depends on.
Hash128 packing_inputs(std::span<const ShardInfo> shards, std::int64_t sequence_length, PackingPolicy policy,
                       const Hash128& asked = {});

// The row of each piece. Rows are numbered from 0 in the order they were opened.
// REQUIRES: 1 <= length <= sequence_length.
std::vector<std::uint32_t> best_fit_rows(std::span<const std::uint32_t> lengths, std::int64_t sequence_length,
                                         std::size_t window = 65536);

// The table for all documents of the shards. REQUIRES: sequence_length >= 1, shards opened with their documents; edges
// as EdgesAsked says.
// Errors: those of TokenShard::read; invalid if a piece stands for 4 GiB of text or more.
Result<Packing> pack(std::span<const TokenShard> shards, const Tokenizer& tokenizer, std::int64_t sequence_length,
                     const PackingRule& rule);

std::vector<std::byte> serialise(const Packing& packing);
// Errors: corrupt; unsupported (a newer version). `name`: the file's name, for messages.
Result<Packing> parse_packing(std::span<const std::byte> bytes, const std::string& name);

}  // namespace systole
