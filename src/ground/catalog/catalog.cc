#include "ground/catalog/catalog.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ground/base/nearest.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

// Normalizes a name: lower case, words separated by one space.
std::string folded(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '-' || c == '_' || c == ' ') {
      if (!plain.empty() && plain.back() != ' ') plain += ' ';
    } else {
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  while (plain.ends_with(' ')) plain.pop_back();
  return plain;
}

std::string without_maker(std::string name) {
  for (const std::string_view maker : {"nvidia ", "tesla "})
    if (name.starts_with(maker)) name.erase(0, maker.size());
  return name;
}

bool is_accelerator(const CatalogEntry& entry) { return entry.kind == "gpu" || entry.kind == "tpu"; }

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

std::vector<std::string> names_of(const CatalogEntry& entry) {
  std::vector<std::string> names{entry.name};
  names.insert(names.end(), entry.also.begin(), entry.also.end());
  names.insert(names.end(), entry.called.begin(), entry.called.end());
  return names;
}

Result<const CatalogEntry*> Catalog::find_accelerator(std::string_view name) const {
  const std::string wanted = folded(name), bare = without_maker(wanted);
  std::vector<std::string> keys, without;
  for (const auto& [key, entry] : entries_) {
    if (!is_accelerator(entry)) continue;
    keys.push_back(key);
    for (const std::string& known : names_of(entry)) {
      if (folded(known) == wanted) return &entry;
      if (without_maker(folded(known)) == bare && (without.empty() || without.back() != key)) without.push_back(key);
    }
  }
  if (without.size() == 1) return &entries_.find(without.front())->second;
  if (without.size() > 1)
    return error(ErrorKind::invalid, "'{}' may be {}", name, fmt::join(without, " or "))
        .hinted(fmt::format("say which: {}", fmt::join(without, " or ")));
  return error(ErrorKind::not_found, "the catalog knows no accelerator '{}'", name)
      .coded(ErrorCode::no_such_name)
      .hinted(nearest_accelerator_hint(name, *this));
}

std::string nearest_accelerator_hint(std::string_view name, const Catalog& catalog) {
  std::vector<std::string> keys, names;
  std::map<std::string, const CatalogEntry*> entry_of;
  for (const auto& [key, entry] : catalog.entries()) {
    if (!is_accelerator(entry)) continue;
    keys.push_back(key);
    for (std::string& known : names_of(entry)) {
      entry_of.emplace(known, &entry);
      names.push_back(std::move(known));
    }
  }
  std::vector<std::string> near;
  std::set<const CatalogEntry*> told;  // at most one name per accelerator
  for (std::string& known : nearest(name, names, names.size()))
    if (near.size() < 3 && told.insert(entry_of[known]).second) near.push_back(std::move(known));
  if (!near.empty()) return fmt::format("did you mean '{}'?", fmt::join(near, "' or '"));
  return fmt::format("valid: {}", fmt::join(keys, ", "));
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
