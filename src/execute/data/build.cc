#include "execute/data/build.h"

#include <algorithm>
#include <unordered_set>

#include "execute/data/encode.h"
#include "execute/data/known_hashes.h"
#include "execute/data/sample.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

// Increased whenever equal inputs would give other tokens than before. 2: a line with only CR is not a document.
constexpr int kKeyVersion = 2;

Result<SourceFile> identify(const TextFiles& files, const std::string& path) {
  Result<Bytes> size = files.store->size(path);
  if (!size.ok()) return std::move(size).error().at({files.prefix + path});
  if (auto* knows = dynamic_cast<KnowsHashes*>(files.store)) {
    if (const std::optional<Hash128> hash = TRY(knows->known_hash(path)))
      return SourceFile{files.prefix + path, *size, *hash};
  }
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  Hasher hasher;
  for (std::int64_t at = 0; at < size->count();) {
    const auto count = std::min(static_cast<std::int64_t>(buffer.size()), size->count() - at);
    const auto chunk = std::span(buffer).first(static_cast<std::size_t>(count));
    TRY(files.store->read(path, at, chunk));
    hasher.add(chunk);
    at += count;
  }
  return SourceFile{files.prefix + path, *size, hasher.digest()};
}

// Appends everything that the documents of these files depend on to `inputs`, and the files to `sources`.
Status describe(const char* split, const TextFiles& files, const TextOptions& text, std::string& inputs,
                std::vector<SourceFile>& sources) {
  for (const std::string& path : files.paths) {
    const SourceFile source = TRY(identify(files, path));
    const TextFormat format = format_of(path, text.format);
    const bool fields = format != TextFormat::text;
    inputs += fmt::format("{} {} bytes {} {} {} {} {} utf8 {} largest {}\n", split, source.size.count(),
                          to_hex(source.hash), name_of(compression_of(path, text.compression)), name_of(format),
                          fields ? "field" : "document", fields ? text.field.c_str() : name_of(text.document),
                          name_of(text.invalid_utf8), text.largest_document.count());
    if (records_of(format) && text.bad_records.on_bad_record == OnBadRecord::skip)
      inputs += fmt::format("{} bad records {}\n", split, text.bad_records.at_most);
    if (!text.where.empty()) inputs += fmt::format("{} where {}\n", split, text.where);
    if (text.dedupe) inputs += fmt::format("{} dedupe\n", split);
    if (!text.target.empty()) inputs += fmt::format("{} target {}\n", split, text.target);
    sources.push_back(source);
  }
  return Done{};
}

std::string line_of(std::string_view model) { return fmt::format("tokenizer model {}\n", to_hex(hash128(model))); }

std::string key_of(const std::string& text) { return to_hex(hash128(text)).substr(0, 16); }

}  // namespace

DatasetInputs with_tokenizer(DatasetInputs inputs, std::string_view model) {
  const std::size_t begin = inputs.text.rfind("\ntokenizer ") + 1;
  inputs.text.replace(begin, inputs.text.find('\n', begin) + 1 - begin, line_of(model));
  inputs.key = key_of(inputs.text);
  return inputs;
}

Result<DatasetInputs> dataset_inputs(const BuildOptions& options) {
  DatasetInputs inputs;
  inputs.text = fmt::format("systole tokens {}\n", kKeyVersion);
  TRY(describe("train", options.train, options.train_text, inputs.text, inputs.sources));
  if (options.held_out) {
    TRY(describe("held_out", *options.held_out, options.held_out_text, inputs.text, inputs.sources));
  } else {
    inputs.text += fmt::format("held_out fraction {}\n", options.held_out_fraction);
  }
  if (options.tokenizer_model) {
    inputs.text += line_of(*options.tokenizer_model);
  } else {
    const TokenizerOptions& tokenizer = options.tokenizer;
    inputs.text += fmt::format("tokenizer {} vocabulary {} sample {} threads {}\n", name_of(tokenizer.kind),
                               tokenizer.vocabulary, tokenizer.sample.count(), tokenizer.threads);
  }
  inputs.text += fmt::format("seed {}\nshard {}\n", options.seed, options.shard_tokens);
  if (options.target_length > 0)
    inputs.text += fmt::format("pairs {} {}\n", options.sequence_length - options.target_length, options.target_length);
  inputs.key = key_of(inputs.text);
  return inputs;
}

namespace {

// The shards of one split; opens and closes them as they fill.
class ShardSet {
 public:
  ShardSet(Store& store, std::string key, std::string name, ShardTokens about, std::int64_t shard_tokens)
      : store_(store), key_(std::move(key)), name_(std::move(name)), about_(about), shard_tokens_(shard_tokens) {}

  Status add(std::span<const std::int32_t> tokens, std::int64_t bytes) {
    if (!writer_) {
      const std::string file = fmt::format("{}-{:05}.tokens", name_, split_.shards.size());
      writer_.emplace(TRY(TokenShardWriter::create(store_, key_ + "/" + file, about_)));
    }
    TRY(writer_->add(tokens, bytes));
    return writer_->tokens() >= shard_tokens_ ? close() : Status();
  }

  Result<SplitTokens> finish() {
    TRY(close());
    return split_;
  }

 private:
  Status close() {
    if (!writer_) return Done{};
    ShardInfo info = TRY(writer_->finish());
    writer_.reset();
    info.path = info.path.substr(key_.size() + 1);
    split_.documents += info.documents;
    split_.tokens += info.tokens;
    split_.bytes += info.bytes;
    split_.shards.push_back(std::move(info));
    return Done{};
  }

  Store& store_;
  std::string key_, name_;
  ShardTokens about_;
  std::int64_t shard_tokens_;
  std::optional<TokenShardWriter> writer_;
  SplitTokens split_;
};

class Builder {
 public:
  Builder(Store& store, const BuildOptions& options, DatasetInputs inputs)
      : store_(store), options_(options), inputs_(std::move(inputs)) {}

  Result<Dataset> build() {
    bool have = TRY(complete());
    const bool all = have && TRY(packed());
    if (!all && options_.made_elsewhere && options_.made_elsewhere()) have = TRY(complete());
    if (!have) TRY(make_tokens());
    const TokensManifest manifest = TRY(read_tokens_manifest(store_, inputs_.key));
    TRY(make_packing(manifest, false));
    TRY(make_packing(manifest, true));
    Dataset dataset = TRY(open_dataset(store_, inputs_.key, options_.sequence_length, options_.policy));
    dataset.built = std::move(built_);
    return dataset;
  }

 private:
  TokenizerUse use() const { return options_.target_length > 0 ? TokenizerUse::pairs : TokenizerUse::documents; }
  void progress(std::string_view stage, std::int64_t bytes) const {
    if (options_.progress) options_.progress(stage, Bytes(bytes));
  }

  // Whether the manifest and every file it names exist. Damage is found later, when they are opened.
  Result<bool> complete() {
    if (!TRY(store_.exists(inputs_.key + "/tokens.json"))) return false;
    const TokensManifest manifest = TRY(read_tokens_manifest(store_, inputs_.key));
    bool all = TRY(store_.exists(inputs_.key + "/tokenizer.model"));
    for (const SplitTokens* split : {&manifest.train, &manifest.held_out}) {
      for (const ShardInfo& shard : split->shards) all = TRY(store_.exists(inputs_.key + "/" + shard.path)) && all;
    }
    return all;
  }

  // REQUIRES: complete().
  Result<bool> packed() {
    const TokensManifest manifest = TRY(read_tokens_manifest(store_, inputs_.key));
    bool all = true;
    for (const bool held_out : {false, true}) {
      if ((held_out ? manifest.held_out : manifest.train).shards.empty()) continue;
      all = TRY(store_.exists(packing_path(inputs_.key, held_out, options_.sequence_length, options_.policy))) && all;
    }
    return all;
  }

  Status make_tokens() {
    TRY(store_.make_dirs(inputs_.key));
    TRY(store_.remove(inputs_.key + "/tokens.json"));  // it names a missing file
    const Tokenizer tokenizer = TRY(make_tokenizer());
    TokensManifest manifest = TRY(encode(tokenizer));
    built_.insert(built_.end(), {"tokenizer", "token shards"});
    TRY(store_.sync_dir(inputs_.key));
    TRY(store_.sync_dir(""));
    return write_whole(store_, inputs_.key + "/tokens.json", to_json(manifest));
  }

  Result<Tokenizer> make_tokenizer() {
    TextSample sample(options_.tokenizer.sample, options_.seed);
    TextReader reader(options_.train, options_.train_text);
    std::int64_t documents = 0, held_out = 0, reported = 0;
    for (Document document; TRY(reader.next(document));) {
      ++documents;
      const bool out = !options_.held_out && is_held_out(document.text, options_.held_out_fraction, options_.seed);
      held_out += out ? 1 : 0;
      if (!out) sample.add(document);
      if (reader.stats().bytes - reported > (std::int64_t{1} << 22))
        progress("reading", reported = reader.stats().bytes);
    }
    if (documents == held_out) {
      return error(ErrorKind::invalid, "no document to train on: {} found, {} of them set aside", documents, held_out)
          .hinted("check `document:` and the files; a smaller `held_out` fraction sets fewer aside");
    }
    if (!options_.held_out && options_.held_out_fraction > 0 && held_out == 0 && !options_.may_hold_none_out) {
      return error(ErrorKind::invalid, "no document was set aside: {}, a fraction of {}",
                   counted(documents, "document"), options_.held_out_fraction)
          .hinted("raise the fraction, cut the text into smaller documents, or name held-out files");
    }
    if (!options_.tokenizer_model) progress("training the tokenizer", reader.stats().bytes);
    Tokenizer tokenizer = TRY(options_.tokenizer_model ? Tokenizer::load(*options_.tokenizer_model, use())
                                                       : Tokenizer::train(options_.tokenizer, sample.take()));
    TRY(write_whole(store_, inputs_.key + "/tokenizer.model", tokenizer.model()));
    return tokenizer;
  }

  Result<TokensManifest> encode(const Tokenizer& tokenizer) {
    const ShardTokens about{tokenizer.hash(), tokenizer.vocabulary(), tokenizer.eos()};
    ShardSet train(store_, inputs_.key, "train", about, options_.shard_tokens);
    ShardSet held_out(store_, inputs_.key, "held_out", about, options_.shard_tokens);
    TokensManifest manifest{.key = inputs_.key,
                            .inputs = inputs_.text,
                            .sources = inputs_.sources,
                            .tokenizer = tokenizer.hash(),
                            .vocabulary = tokenizer.vocabulary()};
    std::unordered_set<std::uint64_t> held_out_texts;
    std::int64_t before = 0;
    const auto pass = [&](const TextFiles& files, const TextOptions& text, auto held) -> Status {
      TextReader reader(files, text);
      EncodeStep step;
      if (options_.target_length > 0)
        step.pairs = PairLengths{static_cast<std::size_t>(options_.sequence_length - options_.target_length),
                                 static_cast<std::size_t>(options_.target_length)};
      step.next = [&](Document& document, bool& out) -> Result<bool> {
        if (!TRY(reader.next(document))) return false;
        out = held(document.text);
        return true;
      };
      step.cut = [&manifest] { ++manifest.cut; };
      step.sink = [&](std::span<const std::int32_t> tokens, std::int64_t bytes, bool out) {
        progress("encoding", before += bytes);
        return (out ? held_out : train).add(tokens, bytes);
      };
      TRY(encode_documents(tokenizer, options_.threads, step));
      manifest.empty += reader.stats().empty;
      manifest.replaced += reader.stats().replaced;
      manifest.skipped += reader.stats().skipped;
      manifest.filtered += reader.stats().filtered;
      manifest.repeated += reader.stats().repeated;
      return Done{};
    };
    if (options_.held_out) {
      TRY(pass(*options_.held_out, options_.held_out_text, [&](const std::string& text) {
        held_out_texts.insert(hash64(text, options_.seed));
        return true;
      }));
    }
    TRY(pass(options_.train, options_.train_text, [&](const std::string& text) {
      if (!options_.held_out) return is_held_out(text, options_.held_out_fraction, options_.seed);
      if (held_out_texts.contains(hash64(text, options_.seed))) ++manifest.held_out_also_in_train;
      return false;
    }));
    manifest.train = TRY(train.finish());
    manifest.held_out = TRY(held_out.finish());
    if (options_.held_out && manifest.held_out.documents == 0) {
      return error(ErrorKind::invalid, "the held-out files hold no document").hinted("check `document:` and the files");
    }
    return manifest;
  }

  Status make_packing(const TokensManifest& manifest, bool held_out) {
    const SplitTokens& split = held_out ? manifest.held_out : manifest.train;
    const std::string path = packing_path(inputs_.key, held_out, options_.sequence_length, options_.policy);
    if (split.shards.empty() || TRY(store_.exists(path))) return Done{};
    progress("packing", split.bytes);
    const Tokenizer tokenizer = TRY(Tokenizer::load(TRY(read_text(store_, inputs_.key + "/tokenizer.model")), use()));
    std::vector<TokenShard> shards;
    for (const ShardInfo& shard : split.shards) {
      shards.push_back(TRY(TokenShard::open(store_, inputs_.key + "/" + shard.path)));
    }
    const Packing packing = TRY(
        pack(shards, tokenizer, options_.sequence_length, held_out ? options_.policy.of_held_out() : options_.policy));
    CHECK(packing.tokens == split.tokens && packing.bytes == split.bytes, "packed {} of {} tokens, {} of {} bytes",
          packing.tokens, split.tokens, packing.bytes, split.bytes);
    built_.push_back(held_out ? "held-out packing" : "training packing");
    return write_whole(store_, path, serialise(packing));
  }

  Store& store_;
  const BuildOptions& options_;
  DatasetInputs inputs_;
  std::vector<std::string> built_;
};

}  // namespace

Result<Dataset> build_dataset(Store& store, const BuildOptions& options) {
  CHECK(options.sequence_length >= 1 && options.threads >= 1 && options.train.store != nullptr,
        "rows of {}, {} threads", options.sequence_length, options.threads);
  CHECK(options.held_out_fraction >= 0 && options.held_out_fraction < 1, "a fraction of {}", options.held_out_fraction);
  return Builder(store, options, TRY(dataset_inputs(options))).build();
}

}  // namespace systole
