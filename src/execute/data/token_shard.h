#pragma once
// A token shard: the tokens of many documents in one file, with an index, and checksums over every byte.
//
// All numbers are little-endian. A hash is XXH3-64 (base/hash.h) with seed 0.
//
//   header, 64 bytes
//     0   8  "SYSTOKEN"
//     8   4  version, 1
//    12   4  bytes per token: 2 if the vocabulary is at most 65,536, otherwise 4
//    16   4  vocabulary
//    20   4  eos, the token that ends each document
//    24  16  hash of the tokenizer's model, XXH3-128, high half first
//    40  16  zeros
//    56   8  hash of bytes 0..55
//   tokens, from byte 64; documents one after another, then zeros to a multiple of 8
//   index
//     per document   8  one past its last token, counted in tokens from the shard's first
//                    8  bytes of its text in the source, separator included
//     per block      8  hash of 4,096 bytes of the token section (the last block is shorter; zeros included)
//   trailer, 64 bytes, the file's last
//     0   8  documents        8   8  tokens        16   8  bytes of text       24   8  offset of the index
//    32   8  hash of the index       40   8  zero
//    48   8  hash of the trailer's bytes 0..47
//    56   8  "NEKOTSYS"
//
// A shard's id is the XXH3-128 of header, index and trailer. It covers the tokens through their blocks' hashes, and is
// known without reading them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ground/base/hash.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/readable.h"
#include "ground/store/store.h"

namespace systole {

constexpr std::size_t kTokenBlockBytes = 4096;

struct ShardInfo {
  std::string path;
  Hash128 id;
  std::int64_t documents = 0, tokens = 0;
  std::int64_t bytes = 0;  // of text
  bool operator==(const ShardInfo&) const = default;
};

struct ShardTokens {  // the header's description of the tokens
  Hash128 tokenizer;
  std::int32_t vocabulary = 0, eos = 0;
  bool operator==(const ShardTokens&) const = default;
};

// Writes a shard to `path`.partial and renames it when complete. Keeps the index in memory until then: 16 bytes per
// document. One thread.
class TokenShardWriter {
 public:
  static Result<TokenShardWriter> create(Store& store, std::string path, const ShardTokens& about);
  ~TokenShardWriter();
  TokenShardWriter(TokenShardWriter&&) noexcept;

  // Adds a document: its tokens, ending with the only eos, and the bytes of text they stand for.
  // REQUIRES: 0 <= token < vocabulary, at least one token. Errors: io, no_space.
  Status add(std::span<const std::int32_t> tokens, std::int64_t bytes);
  std::int64_t tokens() const { return info_.tokens; }
  // Syncs and renames; the caller must sync the folder.
  Result<ShardInfo> finish();

 private:
  TokenShardWriter(Store& store, std::string path, const ShardTokens& about);
  Status flush(bool all);
  Store* store_;
  ShardTokens about_;
  ShardInfo info_;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> header_, pending_;
  std::vector<std::uint64_t> documents_, blocks_;
  std::int64_t written_ = 0;
};

// An open shard: header, index and trailer are read and verified on opening; tokens block by block on reading.
// Immutable; thread-safe, with one scratch buffer per thread.
class TokenShard {
 public:
  // Errors: not_found, io; corrupt (damaged or truncated); unsupported (a newer version, by its number). Each names the
  // shard. `keep_documents = false` drops the documents' index after verification: then do not call document_*().
  static Result<TokenShard> open(Store& store, const std::string& path, bool keep_documents = true);

  const ShardInfo& info() const { return info_; }
  const ShardTokens& about() const { return about_; }
  std::int64_t token_bytes() const { return token_bytes_; }  // of one token: 2 or 4
  std::int64_t document_begin(std::int64_t document) const { return document == 0 ? 0 : at(2 * document - 2); }
  std::int64_t document_end(std::int64_t document) const { return at(2 * document); }
  std::int64_t document_bytes(std::int64_t document) const { return at(2 * document + 1); }

  // Fills `into` with the tokens from `begin` on. Allocates nothing.
  // REQUIRES: begin + into.size() <= info().tokens; scratch of kTokenBlockBytes. Errors: io; corrupt, naming the block.
  Status read(std::int64_t begin, std::span<std::int32_t> into, std::span<std::byte> scratch) const;
  // Reads every token and checks: block hashes, vocabulary, and that eos ends each document and appears nowhere else.
  // REQUIRES: opened with its documents.
  Status verify() const;
  Bytes resident() const;  // memory of its tables

 private:
  TokenShard() = default;
  std::int64_t at(std::int64_t index) const {
    return static_cast<std::int64_t>(documents_[static_cast<std::size_t>(index)]);
  }
  Status read_index(std::span<const std::byte> header, bool keep_documents);
  Status read_block(std::int64_t block, std::span<std::byte> into) const;

  Store* store_ = nullptr;
  std::shared_ptr<const ReadableFile> file_;  // held open: a network file system asks its server at each opening
  ShardInfo info_;
  ShardTokens about_;
  std::int64_t token_bytes_ = 2;
  std::vector<std::uint64_t> documents_;  // per document: end, bytes
  std::vector<std::uint64_t> blocks_;
};

}  // namespace systole
