// Opening a dataset of many small documents: the time, and the memory of its index a document.
//
//   dataset_bench [DOCUMENTS]     10 million, of 8 to 55 tokens, in shards of 2.5 million; rows of 256 tokens

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "execute/data/dataset.h"
#include "ground/base/philox.h"

namespace {

using namespace systole;

constexpr std::int64_t kPerShard = 2'500'000, kRow = 256;
constexpr const char* kKey = "many";

Tokenizer small_tokenizer() {
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) texts.push_back(fmt::format("row {} of a text about nothing, number {}", i, i * 7919));
  return Tokenizer::train({.vocabulary = 300}, texts).value();
}

// The dataset's files, without its packing tables.
TokensManifest write_tokens(Store& store, const Tokenizer& tokenizer, std::int64_t documents) {
  TokensManifest manifest{.key = kKey, .tokenizer = tokenizer.hash(), .vocabulary = tokenizer.vocabulary()};
  PhiloxStream random(7);
  std::vector<std::int32_t> tokens;
  for (std::int64_t begin = 0; begin < documents; begin += kPerShard) {
    const std::string name = fmt::format("train-{:05}.tokens", begin / kPerShard);
    const ShardTokens about{tokenizer.hash(), tokenizer.vocabulary(), tokenizer.eos()};
    TokenShardWriter writer = TokenShardWriter::create(store, fmt::format("{}/{}", kKey, name), about).value();
    for (std::int64_t i = begin; i < std::min(documents, begin + kPerShard); ++i) {
      tokens.assign(8 + random.below(48), tokenizer.bos());
      tokens.back() = tokenizer.eos();
      writer.add(tokens, static_cast<std::int64_t>(tokens.size())).value();
    }
    ShardInfo info = writer.finish().value();
    info.path = name;
    manifest.train.documents += info.documents;
    manifest.train.tokens += info.tokens;
    manifest.train.bytes += info.bytes;
    manifest.train.shards.push_back(info);
  }
  write_whole(store, fmt::format("{}/tokenizer.model", kKey), tokenizer.model()).value();
  write_whole(store, fmt::format("{}/tokens.json", kKey), to_json(manifest)).value();
  return manifest;
}

void write_packing(Store& store, const TokensManifest& manifest, const Tokenizer& tokenizer, PackingPolicy policy) {
  std::vector<TokenShard> shards;
  for (const ShardInfo& info : manifest.train.shards) {
    shards.push_back(TokenShard::open(store, fmt::format("{}/{}", kKey, info.path)).value());
  }
  const Packing packing = pack(shards, tokenizer, kRow, policy).value();
  const std::vector<std::byte> bytes = serialise(packing);
  write_whole(store, packing_path(kKey, false, kRow, policy),
              {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
      .value();
}

}  // namespace

int main(int count, char** words) {
  const std::int64_t documents = count > 1 ? std::stoll(words[1]) : 10'000'000;
  std::string own = (std::filesystem::temp_directory_path() / "systole-dataset-bench-XXXXXX").string();
  CHECK(::mkdtemp(own.data()) != nullptr, "no folder '{}'", own);
  const std::filesystem::path folder = own;
  std::filesystem::create_directories(folder / kKey);
  {
    const auto store = open_posix_store(folder.string()).value();
    const Tokenizer tokenizer = small_tokenizer();
    const TokensManifest manifest = write_tokens(*store, tokenizer, documents);
    for (const PackingPolicy policy : {PackingPolicy::packed, PackingPolicy::padded}) {
      write_packing(*store, manifest, tokenizer, policy);
      double best = 1e9, bytes = 0;
      for (int i = 0; i < 3; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const Dataset dataset = open_dataset(*store, kKey, kRow, policy).value();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        bytes = static_cast<double>(dataset.train->resident().count());
      }
      fmt::print("{} documents, {}: opened in {:.2f} s, the index takes {:.1f} bytes a document\n", documents,
                 name_of(policy), best, bytes / static_cast<double>(documents));
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
