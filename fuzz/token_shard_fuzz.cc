// Token shards and packing tables (execute/data): whatever the bytes, opening and reading ends in a value or an Error.
//
// A checksum stops nearly every random input early, so the input is also taken as a description: a shard is written
// from it and a few of its bytes are changed and their section's checksum left or mended, to reach the checks behind.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "execute/data/little_endian.h"
#include "execute/data/packing.h"
#include "execute/data/token_shard.h"

namespace {

using namespace systole;

void read_everything(Store& store, const char* path) {
  for (const bool keep_documents : {true, false}) {
    const Result<TokenShard> shard = TokenShard::open(store, path, keep_documents);
    if (!shard.ok()) continue;
    if (keep_documents) (void)shard->verify();
    std::vector<std::byte> scratch(kTokenBlockBytes);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(shard->info().tokens));
    (void)shard->read(0, tokens, scratch);
  }
}

// Writes the right checksums over header, index and trailer, where the file is long enough to have them.
void mend(std::vector<std::byte>& bytes) {
  if (bytes.size() < 128) return;
  const auto put_at = [&](std::size_t at, std::uint64_t value) { std::memcpy(bytes.data() + at, &value, 8); };
  const std::span<const std::byte> all(bytes);
  const std::size_t trailer = bytes.size() - 64;
  put_at(56, hash64(all.first(56)));
  const auto index = get<std::uint64_t>(all, trailer + 24);
  if (index <= trailer) put_at(trailer + 32, hash64(all.subspan(index, trailer - index)));
  put_at(trailer + 48, hash64(all.subspan(trailer, 48)));
}

void write_from(std::span<const std::byte> description, Store& store) {
  const std::int32_t vocabulary = std::to_integer<int>(description[0]) % 2 == 0 ? 300 : 70'000;
  TokenShardWriter writer = TokenShardWriter::create(store, "made", {{1, 2}, vocabulary, 2}).value();
  std::vector<std::int32_t> tokens;
  for (const std::byte byte : description) {
    if (byte != std::byte{0}) {
      tokens.push_back(2 + std::to_integer<std::int32_t>(byte));
      continue;
    }
    tokens.push_back(2);
    writer.add(tokens, static_cast<std::int64_t>(tokens.size())).value();
    tokens.clear();
  }
  (void)writer.finish().value();
}

// A table with buckets, of which any number may lie, under right checksums.
void read_table_from(std::span<const std::byte> description) {
  const auto number = [&](std::size_t at) { return std::to_integer<std::int64_t>(description[at]); };
  Packing table;
  table.policy = PackingPolicy::bucketed;
  table.sequence_length = number(0);
  const std::size_t buckets = static_cast<std::size_t>(number(1) % 8);
  std::size_t at = 2;
  for (std::size_t b = 0; b < buckets && at + 2 <= description.size(); ++b, at += 2)
    table.buckets.push_back({number(at) - 2, number(at + 1) - 2});
  for (; at < description.size(); ++at) {
    const auto length = static_cast<std::uint32_t>(number(at) & 127);
    table.pieces.push_back({static_cast<std::uint64_t>(table.tokens), length, length});
    table.tokens += length;
    table.bytes += length;
  }
  const Result<Packing> read = parse_packing(serialise(table), "made.rows");
  if (!read.ok()) return;
  for (std::size_t b = 0; b < read->buckets.size(); ++b) {
    const auto [edge, first] = read->buckets[b];
    for (std::int64_t row = 0; row < read->bucket_rows(b); ++row)
      if (read->row(first + row)[0].length > edge) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  (void)parse_packing(input, "fuzz.rows");
  const std::unique_ptr<Store> store = make_memory_store();
  write_whole(*store, "raw", input).value();
  read_everything(*store, "raw");
  if (size < 9) return 0;

  read_table_from(input);
  write_from(input.subspan(8), *store);
  std::vector<std::byte> bytes = read_all(*store, "made").value();
  for (std::size_t i = 0; i < 4; ++i) {  // the input's first bytes: where, counted from either end, and what
    const auto where = std::to_integer<std::size_t>(input[2 * i]);
    const std::size_t at = where % 2 == 0 ? where / 2 : bytes.size() - 1 - where / 2;
    if (at < bytes.size()) bytes[at] ^= input[2 * i + 1];
  }
  if (std::to_integer<int>(input[0]) % 4 != 3) mend(bytes);
  write_whole(*store, "made", bytes).value();
  read_everything(*store, "made");
  return 0;
}
