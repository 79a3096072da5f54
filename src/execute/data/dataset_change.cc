#include "execute/data/dataset_change.h"

#include <algorithm>

namespace systole {
namespace {

// The files of `of` whose content is not in `beside`.
std::string files_only_in(const std::vector<SourceFile>& of, const std::vector<SourceFile>& beside) {
  std::string files;
  for (const SourceFile& file : of) {
    const bool there = std::ranges::any_of(
        beside, [&](const SourceFile& other) { return file.size == other.size && file.hash == other.hash; });
    if (!there) files += fmt::format("{}'{}'", files.empty() ? "" : ", ", file.path);
  }
  return files;
}

// Skips the first line, the version of Systole.
std::string_view of_any_version(const std::string& inputs) {
  return std::string_view(inputs).substr(std::min(inputs.find('\n'), inputs.size()));
}

std::string_view tokenizer_of(const std::string& inputs) {
  const std::size_t at = inputs.find("\ntokenizer ");
  return at == inputs.npos ? std::string_view() : std::string_view(inputs).substr(at, inputs.find('\n', at + 1) - at);
}

bool same_shards(const SplitTokens& a, const SplitTokens& b) {
  return std::ranges::equal(a.shards, b.shards, {}, &ShardInfo::id, &ShardInfo::id);
}

}  // namespace

std::string DatasetChange::told(std::string_view begun) const {
  return fmt::format("the {} is another than {} (dataset {} then, {} now){}", what, begun, then, now, files);
}

std::optional<DatasetChange> other_inputs(Store& store, const std::string& then, const DatasetInputs& now) {
  if (then == now.key) return std::nullopt;
  const Result<TokensManifest> before = read_tokens_manifest(store, then);
  if (!before.ok()) return DatasetChange{"text or its tokenizer", then, now.key, {}};
  if (of_any_version(before->inputs) == of_any_version(now.text)) return std::nullopt;
  if (const std::string fresh = files_only_in(now.sources, before->sources); !fresh.empty())
    return DatasetChange{"text", then, now.key, ": it is new in " + fresh};
  if (const std::string gone = files_only_in(before->sources, now.sources); !gone.empty())
    return DatasetChange{"text", then, now.key, ": now without " + gone};
  const bool same_tokenizer = tokenizer_of(before->inputs) == tokenizer_of(now.text);
  return DatasetChange{same_tokenizer ? "way the text is read" : "tokenizer", then, now.key, {}};
}

std::optional<DatasetChange> other_tokens(Store& store, const std::string& then, const TokensManifest& now) {
  if (then == now.key) return std::nullopt;
  const Result<TokensManifest> before = read_tokens_manifest(store, then);
  if (!before.ok()) return DatasetChange{"text or its tokenizer", then, now.key, {}};
  if (before->tokenizer != now.tokenizer) return DatasetChange{"tokenizer", then, now.key, {}};
  if (!same_shards(before->train, now.train) || !same_shards(before->held_out, now.held_out))
    return DatasetChange{"way the text is read", then, now.key, {}};
  return std::nullopt;
}

}  // namespace systole
