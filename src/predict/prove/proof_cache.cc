#include "predict/prove/proof_cache.h"

#include <algorithm>

namespace systole::prove {
namespace {

constexpr const char* kEnding = ".json";

std::optional<Proof> proof_in(const std::string& text) {
  const Result<Node> node = parse_json(text, "the cache");
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

ProofCache::ProofCache(Store& store, Bytes limit) : files_(store, limit, kEnding) {}

std::optional<Proof> ProofCache::find(const std::string& key) {
  const std::optional<std::string> text = files_.find(key);
  if (!text) return std::nullopt;
  std::optional<Proof> proof = proof_in(*text);
  if (!proof) files_.remove(key);  // whole, but of another version: it would never be found
  return proof;
}

Result<std::vector<ProofCache::Entry>> ProofCache::list() {
  std::vector<Entry> entries;
  for (const ContentCache::Entry& file : TRY(files_.list())) {
    const std::optional<std::string> text = files_.look(file.key);
    std::optional<Proof> proof = text ? proof_in(*text) : std::nullopt;
    if (proof) entries.push_back({file.key, file.size, *std::move(proof)});
  }
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.proof.made > b.proof.made; });
  return entries;
}

Status ProofCache::keep(const std::string& key, const Proof& proof) {
  return files_.keep(key, to_json(to_node(proof)));
}

}  // namespace systole::prove
