#include "ground/catalog/catalog.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/nearest.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

}  // namespace

Result<const Fact*> CatalogEntry::fact(std::string_view key, CatalogUnit unit) const {
  const auto found = facts.find(std::string(key));
  if (found == facts.end()) {
    std::vector<std::string> keys;
    for (const auto& [known, fact] : facts) keys.push_back(known);
    return error(ErrorKind::not_found, "the catalog does not know {} of {}", key, name).hinted(nearest_hint(key, keys));
  }
  if (found->second.unit != unit) {
    return error(ErrorKind::invalid, "{} of {} is in '{}', and not in '{}'", key, name, name_of(found->second.unit),
                 name_of(unit))
        .at(found->second.where);
  }
  return &found->second;
}

Result<FlopRate> CatalogEntry::flop_rate(std::string_view key) const {
  return FlopRate(TRY(fact(key, CatalogUnit::flop_rate))->value);
}
Result<BytesPerSecond> CatalogEntry::bytes_per_second(std::string_view key) const {
  return BytesPerSecond(TRY(fact(key, CatalogUnit::bytes_per_second))->value);
}
Result<Bytes> CatalogEntry::bytes(std::string_view key) const {
  return Bytes(static_cast<std::int64_t>(TRY(fact(key, CatalogUnit::bytes))->value));
}
Result<Seconds> CatalogEntry::seconds(std::string_view key) const {
  return Seconds(TRY(fact(key, CatalogUnit::seconds))->value);
}
Result<double> CatalogEntry::per_second(std::string_view key) const {
  return TRY(fact(key, CatalogUnit::per_second))->value;
}
Result<double> CatalogEntry::number(std::string_view key) const { return TRY(fact(key, CatalogUnit::number))->value; }

std::string CatalogEntry::date() const {
  std::string newest;
  for (const auto& [key, fact] : facts) newest = std::max(newest, fact.date);
  for (const auto& [flag_name, flag] : compiler) newest = std::max(newest, flag.date);
  return newest;
}

Result<const CatalogEntry*> Catalog::find(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found != entries_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) names.push_back(key);
  return error(ErrorKind::not_found, "the catalog has no '{}'", name).hinted(nearest_hint(name, names));
}

Result<const CatalogEntry*> Catalog::find_accelerator(std::string_view name) const {
  const std::string wanted = lower(name);
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) {
    if (entry.kind != "gpu" && entry.kind != "tpu") continue;
    const auto is = [&](const std::string& known) { return lower(known) == wanted; };
    if (is(key) || std::ranges::any_of(entry.also, is)) return &entry;
    names.push_back(key);
    names.insert(names.end(), entry.also.begin(), entry.also.end());
  }
  const std::vector<std::string> near = nearest(name, names);
  if (near.empty()) std::erase_if(names, [&](const std::string& known) { return !entries_.contains(known); });
  return error(ErrorKind::not_found, "the catalog knows no accelerator '{}'", name)
      .hinted(near.empty() ? fmt::format("valid: {}", fmt::join(names, ", ")) : nearest_hint(name, names));
}

std::string Catalog::date() const {
  std::string newest;
  for (const auto& [name, entry] : entries_) newest = std::max(newest, entry.date());
  return newest;
}

std::string user_catalog_folder(const char* xdg_config_home, const char* home) {
  const auto set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (set(xdg_config_home)) return std::string(xdg_config_home) + "/systole/catalog";
  return set(home) ? std::string(home) + "/.config/systole/catalog" : std::string();
}

Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<CatalogFile> files;
  std::error_code code;
  if (folder.empty() || !fs::exists(folder, code)) return files;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (it->path().extension() == ".yaml") paths.push_back(it->path().string());
  }
  if (code) return error(ErrorKind::io, "cannot read the folder: {}", code.message()).at({folder, 0, 0});
  std::ranges::sort(paths);
  for (const std::string& path : paths) { files.push_back({path, TRY(read_text_file(path))}); }
  return files;
}

}  // namespace systole
