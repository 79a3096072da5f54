#include "ground/store/content_cache.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "ground/base/hash.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

constexpr const char* kUsed = "used";
constexpr const char* kPart = ".part";
constexpr Bytes kLongestUsed = kKiB * 64;  // beyond this it is rewritten, each key once

Status write(Store& store, const std::string& file, std::string_view text) {
  const std::unique_ptr<WritableFile> part = TRY(store.create(file));
  TRY(part->append(std::as_bytes(std::span(text))));
  return part->close();  // not synced: a value damaged by a power cut fails its hash
}

}  // namespace

ContentCache::ContentCache(Store& store, Bytes limit, std::string ending)
    : store_(store), limit_(limit), ending_(std::move(ending)) {}

std::vector<std::string> ContentCache::used() {
  const Result<std::string> text = read_text(store_, kUsed);
  if (!text.ok()) return {};
  std::istringstream lines(*text);
  std::vector<std::string> all;
  for (std::string key; std::getline(lines, key);) all.push_back(key);
  std::vector<std::string> once;
  for (auto key = all.rbegin(); key != all.rend(); ++key) {
    if (std::ranges::find(once, *key) == once.end()) once.push_back(*key);
  }
  std::ranges::reverse(once);
  return once;
}

void ContentCache::note_use(const std::string& key) {
  const Result<Bytes> size = store_.size(kUsed);
  if (size.ok() && *size > kLongestUsed) {
    std::string text;
    for (const std::string& one : used()) {
      const Result<bool> there = store_.exists(one + ending_);
      if (there.ok() && *there) text += one + "\n";
    }
    (void)write_whole(store_, kUsed, text);
  }
  Result<std::unique_ptr<WritableFile>> file = store_.append_to(kUsed);
  if (!file.ok()) return;
  const std::string line = key + "\n";
  (void)(*file)->append(std::as_bytes(std::span(line)));
}

std::optional<std::string> ContentCache::find(const std::string& key) {
  std::optional<std::string> value = look(key);
  if (value) note_use(key);
  return value;
}

std::optional<std::string> ContentCache::look(const std::string& key) {
  const Result<std::string> text = read_text(store_, key + ending_, limit_);
  if (!text.ok()) return std::nullopt;
  const std::size_t line = text->find('\n');
  const std::string_view value = line == text->npos ? std::string_view() : std::string_view(*text).substr(line + 1);
  if (line == text->npos || text->substr(0, line) != to_hex(hash128(value))) {
    remove(key);  // a corrupt file only takes up space
    return std::nullopt;
  }
  return std::string(value);
}

Status ContentCache::keep(const std::string& key, std::string_view value) {
  const std::string text = to_hex(hash128(value)) + "\n" + std::string(value);
  const Bytes size(static_cast<std::int64_t>(text.size()));
  if (size > limit_) return {};
  TRY(make_room(size));
  const std::string part = unfinished_name(key + ending_, kPart);
  Status written = write(store_, part, text);
  if (written.ok()) written = store_.rename(part, key + ending_);
  if (!written.ok()) {
    (void)store_.remove(part);
    return written;
  }
  note_use(key);
  return {};
}

void ContentCache::remove(const std::string& key) { (void)store_.remove(key + ending_); }

Result<std::vector<ContentCache::Entry>> ContentCache::list() {
  std::map<std::string, std::size_t> order;
  const std::vector<std::string> lately = used();
  for (std::size_t i = 0; i < lately.size(); ++i) order.emplace(lately[i], i + 1);
  std::vector<Entry> entries;
  for (const std::string& file : TRY(store_.list(""))) {
    if (!file.ends_with(ending_) || file == kUsed || file.ends_with(kPart) || file.ends_with('/')) continue;
    const Result<Bytes> size = store_.size(file);
    if (size.ok()) entries.push_back({file.substr(0, file.size() - ending_.size()), *size});
  }
  std::ranges::stable_sort(entries, std::greater<>(), [&](const Entry& entry) { return order[entry.key]; });
  return entries;
}

Status ContentCache::make_room(Bytes needed) {
  std::vector<Entry> entries = TRY(list());
  Bytes sum = needed;
  for (const Entry& entry : entries) sum += entry.size;
  // Partial files of dead writers go before any whole value. If the writer still lives, its rename fails, and the value
  // is recomputed later.
  for (const std::string& file : TRY(store_.list(""))) {
    if (!file.ends_with(kPart)) continue;
    const Result<Bytes> size = store_.size(file);
    if (!size.ok()) continue;
    if (sum + *size > limit_)
      TRY(store_.remove(file));
    else
      sum += *size;
  }
  for (; sum > limit_ && !entries.empty(); entries.pop_back()) {
    TRY(store_.remove(entries.back().key + ending_));
    sum -= entries.back().size;
  }
  return {};
}

}  // namespace systole
