// Reads and writes tokens.json. Hashes are hexadecimal strings; bytes and counts are integers.

#include <nlohmann/json.hpp>

#include "execute/data/dataset.h"

namespace systole {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

Json json_of(const SplitTokens& split) {
  Json shards = Json::array();
  for (const ShardInfo& shard : split.shards) {
    shards.push_back({{"file", shard.path},
                      {"id", to_hex(shard.id)},
                      {"documents", shard.documents},
                      {"tokens", shard.tokens},
                      {"text_bytes", shard.bytes}});
  }
  return {{"documents", split.documents}, {"tokens", split.tokens}, {"text_bytes", split.bytes}, {"shards", shards}};
}

Hash128 hash_of(const std::string& hex) {
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fail(error(ErrorKind::corrupt, "'{}' is not a hash of 32 hexadecimal digits", hex));
  }
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

std::int64_t count_of(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
    fail(error(ErrorKind::corrupt, "'{}' is not a count", key));
  }
  return value.get<std::int64_t>();
}

SplitTokens split_of(const Json& json) {
  SplitTokens split;
  split.documents = count_of(json, "documents");
  split.tokens = count_of(json, "tokens");
  split.bytes = count_of(json, "text_bytes");
  for (const Json& shard : json.at("shards")) {
    split.shards.push_back({shard.at("file").get<std::string>(), hash_of(shard.at("id").get<std::string>()),
                            count_of(shard, "documents"), count_of(shard, "tokens"), count_of(shard, "text_bytes")});
  }
  return split;
}

TokensManifest manifest_of(const Json& json) {
  TokensManifest manifest;
  manifest.key = json.at("key").get<std::string>();
  manifest.inputs = json.at("inputs").get<std::string>();
  for (const Json& source : json.at("sources")) {
    manifest.sources.push_back({source.at("path").get<std::string>(), Bytes(count_of(source, "bytes")),
                                hash_of(source.at("hash").get<std::string>())});
  }
  manifest.tokenizer = hash_of(json.at("tokenizer").at("hash").get<std::string>());
  manifest.vocabulary = static_cast<int>(count_of(json.at("tokenizer"), "vocabulary"));
  manifest.train = split_of(json.at("train"));
  manifest.held_out = split_of(json.at("held_out"));
  manifest.empty = count_of(json, "empty_documents");
  manifest.replaced = count_of(json, "replaced_utf8");
  if (json.contains("skipped_records")) manifest.skipped = count_of(json, "skipped_records");
  if (json.contains("filtered_records")) manifest.filtered = count_of(json, "filtered_records");
  if (json.contains("repeated_documents")) manifest.repeated = count_of(json, "repeated_documents");
  if (json.contains("cut_pairs")) manifest.cut = count_of(json, "cut_pairs");  // absent in files older than pairs
  manifest.held_out_also_in_train = count_of(json, "held_out_also_in_train");
  return manifest;
}

Error damaged(const std::string& name, std::string_view why) {
  return error(ErrorKind::corrupt, "this tokens.json is damaged: {}", why)
      .at({name})
      .hinted("remove its folder and build the data again: `systole data build`");
}

}  // namespace

TokenizerUse TokensManifest::use() const {
  return inputs.find("\npairs ") == std::string::npos ? TokenizerUse::documents : TokenizerUse::pairs;
}

std::string to_json(const TokensManifest& manifest) {
  Json sources = Json::array();
  for (const SourceFile& source : manifest.sources) {
    sources.push_back({{"path", source.path}, {"bytes", source.size.count()}, {"hash", to_hex(source.hash)}});
  }
  const Json json = {{"systole_tokens", kVersion},
                     {"key", manifest.key},
                     {"inputs", manifest.inputs},
                     {"sources", sources},
                     {"tokenizer", {{"hash", to_hex(manifest.tokenizer)}, {"vocabulary", manifest.vocabulary}}},
                     {"train", json_of(manifest.train)},
                     {"held_out", json_of(manifest.held_out)},
                     {"empty_documents", manifest.empty},
                     {"replaced_utf8", manifest.replaced},
                     {"skipped_records", manifest.skipped},
                     {"filtered_records", manifest.filtered},
                     {"repeated_documents", manifest.repeated},
                     {"cut_pairs", manifest.cut},
                     {"held_out_also_in_train", manifest.held_out_also_in_train}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TokensManifest> parse_tokens_manifest(std::string_view text, const std::string& name) {
  try {
    const Json json = Json::parse(text.begin(), text.end());
    const std::int64_t version = count_of(json, "systole_tokens");
    if (version > kVersion) {
      return error(ErrorKind::unsupported, "this tokens.json has version {}; this Systole reads up to version {}",
                   version, kVersion)
          .coded(ErrorCode::newer_version)
          .at({name})
          .hinted("use the Systole that wrote it or a newer one, or build the data again");
    }
    return manifest_of(json);
  } catch (const Json::exception& bad) { return damaged(name, bad.what()); } catch (const Failure& bad) {
    return damaged(name, bad.error().message);
  }
}

}  // namespace systole
