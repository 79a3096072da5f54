#include "predict/prove/proof_cache.h"

#include <algorithm>

#include "ground/base/hash.h"

namespace systole::prove {
namespace {

constexpr const char* kEnding = ".json";

std::string text_of(const Proof& proof) {
  const std::string body = to_json(to_node(proof));
  return to_hex(hash128(body)) + "\n" + body + "\n";
}

std::optional<Proof> proof_in(std::string_view text) {
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  const std::string_view body = text.substr(line + 1, text.size() - line - 2);
  if (to_hex(hash128(body)) != text.substr(0, line)) return std::nullopt;
  const Result<Node> node = parse_json(body, "the cache");
  if (!node.ok()) return std::nullopt;
  Result<Proof> proof = proof_of(*node);
  return proof.ok() ? std::optional(*std::move(proof)) : std::nullopt;
}

}  // namespace

std::string cache_folder(const char* xdg_cache_home, const char* home) {
  if (xdg_cache_home != nullptr && *xdg_cache_home != '\0') return std::string(xdg_cache_home) + "/systole/prove";
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/systole/prove";
  return "";
}

std::optional<ProofCache::Entry> ProofCache::read(const std::string& file) {
  const Result<std::string> text = read_text(store_, file, limit_);
  if (!text.ok()) return std::nullopt;
  std::optional<Proof> proof = proof_in(*text);
  if (!proof) {
    (void)store_.remove(file);  // what cannot be believed is only in the way
    return std::nullopt;
  }
  return Entry{file.substr(0, file.size() - std::string_view(kEnding).size()),
               Bytes(static_cast<std::int64_t>(text->size())), *std::move(proof)};
}

std::optional<Proof> ProofCache::find(const std::string& key) {
  std::optional<Entry> entry = read(key + kEnding);
  return entry ? std::optional(std::move(entry->proof)) : std::nullopt;
}

Result<std::vector<ProofCache::Entry>> ProofCache::list() {
  std::vector<Entry> entries;
  for (const std::string& file : TRY(store_.list(""))) {
    if (!file.ends_with(kEnding)) continue;
    if (std::optional<Entry> entry = read(file)) entries.push_back(*std::move(entry));
  }
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.proof.made > b.proof.made; });
  return entries;
}

Status ProofCache::keep(const std::string& key, const Proof& proof) {
  TRY(write_whole(store_, key + kEnding, text_of(proof)));
  Bytes sum;
  for (const Entry& entry : TRY(list())) {
    sum += entry.size;
    if (sum > limit_) TRY(store_.remove(entry.key + kEnding));
  }
  return {};
}

}  // namespace systole::prove
