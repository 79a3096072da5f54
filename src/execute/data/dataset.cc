#include "execute/data/dataset.h"

#include <algorithm>

namespace systole {
namespace {

std::string in(const std::string& key, const std::string& file) { return key + "/" + file; }

Error not_built(const std::string& what) {
  return error(ErrorKind::not_found, "{} is not there", what).hinted("build it: `systole data build`");
}

// Opens the shards of a split and compares them with the manifest.
Result<std::vector<TokenShard>> open_shards(Store& store, const TokensManifest& manifest, const SplitTokens& split,
                                            std::int32_t eos, bool keep_documents) {
  std::vector<TokenShard> shards;
  const ShardTokens about{manifest.tokenizer, manifest.vocabulary, eos};
  for (const ShardInfo& known : split.shards) {
    TokenShard shard = TRY(TokenShard::open(store, in(manifest.key, known.path), keep_documents));
    if (shard.info().id != known.id || shard.about() != about) {
      return error(ErrorKind::corrupt, "this token shard is not the one that {}/tokens.json names", manifest.key)
          .at({shard.info().path})
          .hinted("remove the dataset's folder and build the data again: `systole data build`");
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

Result<Tokenizer> open_tokenizer(Store& store, const TokensManifest& manifest) {
  const std::string path = in(manifest.key, "tokenizer.model");
  Result<Tokenizer> tokenizer = Tokenizer::load(TRY(read_text(store, path)), manifest.use());
  if (!tokenizer.ok()) return std::move(tokenizer).error().at({path});
  if (tokenizer->hash() != manifest.tokenizer) {
    return error(ErrorKind::corrupt, "this tokenizer is not the one that tokens.json names")
        .at({path})
        .hinted("remove the dataset's folder and build the data again: `systole data build`");
  }
  return tokenizer;
}

Result<Packing> open_packing(Store& store, const std::string& path, const SplitTokens& split) {
  Packing packing = TRY(parse_packing(TRY(read_all(store, path)), path));
  if (packing.inputs != packing_inputs(split.shards, packing.sequence_length, packing.policy, packing.asked) ||
      packing.tokens != split.tokens || packing.bytes != split.bytes) {
    return error(ErrorKind::corrupt, "this packing table is of other shards")
        .at({path})
        .hinted("remove it and build the data again: `systole data build`");
  }
  return packing;
}

Result<std::shared_ptr<const PackedTokens>> open_split(Store& store, const TokensManifest& manifest, bool held_out,
                                                       const Tokenizer& tokenizer, std::int64_t sequence_length,
                                                       const PackingRule& rule) {
  const SplitTokens& split = held_out ? manifest.held_out : manifest.train;
  if (split.shards.empty()) return std::shared_ptr<const PackedTokens>();
  auto data = std::make_shared<PackedTokens>();
  data->packing = TRY(read_packing(store, manifest, held_out, sequence_length, rule));
  data->shards = TRY(open_shards(store, manifest, split, tokenizer.eos(), false));
  data->bos = tokenizer.bos();
  return std::shared_ptr<const PackedTokens>(std::move(data));
}

}  // namespace

std::string packing_path(const std::string& key, bool held_out, std::int64_t sequence_length, const PackingRule& rule) {
  const PackingPolicy policy = held_out ? rule.of_held_out().policy : rule.policy;
  std::string name = fmt::format("{}-{}-{}", held_out ? "held_out" : "train", sequence_length, name_of(policy));
  if (policy == PackingPolicy::bucketed) name += "-" + to_hex(rule.asked()).substr(0, 12);
  return in(key, name + ".rows");
}

Result<Packing> read_packing(Store& store, const TokensManifest& manifest, bool held_out, std::int64_t sequence_length,
                             const PackingRule& rule) {
  const std::string path = packing_path(manifest.key, held_out, sequence_length, rule);
  if (!TRY(store.exists(path))) return not_built(fmt::format("the packing table '{}'", path));
  Packing packing = TRY(open_packing(store, path, held_out ? manifest.held_out : manifest.train));
  if (packing.asked != (held_out ? rule.of_held_out() : rule).asked()) {
    return error(ErrorKind::corrupt, "this packing table has other buckets than its name says")
        .at({path})
        .hinted("remove it and build the data again: `systole data build`");
  }
  return packing;
}

Result<TokensManifest> read_tokens_manifest(Store& store, const std::string& key) {
  const std::string path = in(key, "tokens.json");
  if (!TRY(store.exists(path))) return not_built(fmt::format("the dataset '{}'", key));
  TokensManifest manifest = TRY(parse_tokens_manifest(TRY(read_text(store, path)), path));
  if (manifest.key == key) return manifest;
  return error(ErrorKind::corrupt, "the dataset in folder '{}' calls itself '{}'", key, manifest.key)
      .at({path})
      .hinted("a dataset's folder may not be renamed");
}

Result<Dataset> open_dataset(Store& store, const std::string& key, std::int64_t sequence_length,
                             const PackingRule& rule) {
  TokensManifest manifest = TRY(read_tokens_manifest(store, key));
  Tokenizer tokenizer = TRY(open_tokenizer(store, manifest));
  auto train = TRY(open_split(store, manifest, false, tokenizer, sequence_length, rule));
  auto held_out = TRY(open_split(store, manifest, true, tokenizer, sequence_length, rule));
  return Dataset{std::move(manifest), std::move(tokenizer), std::move(train), std::move(held_out), {}};
}

Result<std::vector<std::string>> list_datasets(Store& store) {
  std::vector<std::string> keys;
  for (std::string name : TRY(store.list(""))) {
    if (!name.ends_with('/')) continue;
    name.pop_back();
    if (TRY(store.exists(in(name, "tokens.json")))) keys.push_back(name);
  }
  return keys;
}

Result<Bytes> verify_dataset(Store& store, const std::string& key) {
  const TokensManifest manifest = TRY(read_tokens_manifest(store, key));
  const Tokenizer tokenizer = TRY(open_tokenizer(store, manifest));
  Bytes read(static_cast<std::int64_t>(tokenizer.model().size()));
  for (const SplitTokens* split : {&manifest.train, &manifest.held_out}) {
    std::int64_t documents = 0, tokens = 0, bytes = 0;
    for (const TokenShard& shard : TRY(open_shards(store, manifest, *split, tokenizer.eos(), true))) {
      TRY(shard.verify());
      documents += shard.info().documents;
      tokens += shard.info().tokens;
      bytes += shard.info().bytes;
      read += TRY(store.size(shard.info().path));
    }
    if (documents != split->documents || tokens != split->tokens || bytes != split->bytes) {
      return error(ErrorKind::corrupt, "its shards do not add up to what it says").at({in(key, "tokens.json")});
    }
  }
  for (const std::string& name : TRY(store.list(key))) {
    if (!name.ends_with(".rows")) continue;
    const std::string path = in(key, name);
    TRY(open_packing(store, path, name.starts_with("held_out-") ? manifest.held_out : manifest.train));
    read += TRY(store.size(path));
  }
  return read;
}

Result<LengthStats> document_lengths(Store& store, const std::string& key, bool held_out) {
  const TokensManifest manifest = TRY(read_tokens_manifest(store, key));
  std::vector<std::int64_t> lengths;
  for (const ShardInfo& info : (held_out ? manifest.held_out : manifest.train).shards) {
    const TokenShard shard = TRY(TokenShard::open(store, in(key, info.path)));
    for (std::int64_t i = 0; i < shard.info().documents; ++i) {
      lengths.push_back(shard.document_end(i) - shard.document_begin(i));
    }
  }
  if (lengths.empty()) return LengthStats{};
  std::sort(lengths.begin(), lengths.end());
  const auto quantile = [&](std::size_t percent) { return lengths[(lengths.size() - 1) * percent / 100]; };
  return LengthStats{quantile(0), quantile(50), quantile(90), quantile(99), quantile(100)};
}

}  // namespace systole
