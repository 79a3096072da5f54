// Reads the catalog's files; reports all errors at once.
#include <algorithm>

#include "ground/base/document.h"
#include "ground/base/errors.h"
#include "ground/base/hash.h"
#include "ground/base/nearest.h"
#include "ground/catalog/catalog.h"
#include "ground/catalog/dated.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;

class Reader {
 public:
  explicit Reader(std::map<std::string, CatalogEntry>& entries) : entries_(entries) {}
  void read(const CatalogFile& file);
  Status finish();

 private:
  void read_entry(const Node::Entry& node);
  void read_fact(const Node::Entry& node, CatalogEntry& entry);
  void read_flag(const Node::Entry& node, CatalogEntry& entry);
  // Reads `value` with its source and date; "" if absent.
  std::string read_sourced(const Node& map, std::string& source, std::string& date);
  void read_text(const Node& map, const char* key, std::string& text, bool required);
  void read_names(const Node& map, const char* key, std::vector<std::string>& names);
  bool only(const Node& map, const std::vector<std::string>& keys);  // a map with only these keys
  void add(Error e) { errors_.push_back(std::move(e)); }

  std::map<std::string, CatalogEntry>& entries_;
  std::vector<Error> errors_;
};

bool Reader::only(const Node& map, const std::vector<std::string>& keys) {
  if (!map.is_map()) {
    add(map.wrong(fmt::format("a map of {}", fmt::join(keys, ", "))));
    return false;
  }
  for (const Node::Entry& entry : map.entries()) {
    if (std::ranges::find(keys, entry.key) != keys.end()) continue;
    add(error(ErrorKind::invalid, "unknown key '{}'", entry.key)
            .at(entry.where())
            .hinted(nearest_hint(entry.key, keys)));
  }
  return true;
}

void Reader::read_text(const Node& map, const char* key, std::string& text, bool required) {
  const Node* node = map.find(key);
  if (node == nullptr) {
    if (required) add(error(ErrorKind::invalid, "'{}' is missing", key).at(map.where()));
    return;
  }
  if (!node->is_scalar() || node->text().empty()) return add(node->wrong("text"));
  text = node->text();
}

void Reader::read_names(const Node& map, const char* key, std::vector<std::string>& names) {
  const Node* list = map.find(key);
  if (list == nullptr) return;
  if (!list->is_sequence()) return add(list->wrong("a list of names"));
  names.clear();
  for (const Node& name : list->items()) {
    const Result<std::string> text = name.as_string();
    if (text.ok())
      names.push_back(*text);
    else
      add(text.error());
  }
}

std::string Reader::read_sourced(const Node& map, std::string& source, std::string& date) {
  std::string value;
  read_text(map, "value", value, true);
  read_text(map, "source", source, true);
  read_text(map, "date", date, true);
  if (!date.empty() && !is_date(date))
    add(error(ErrorKind::invalid, "'{}' is no date", date).at(map.find("date")->where()).hinted("YYYY-MM-DD"));
  return value;
}

void Reader::read_flag(const Node::Entry& node, CatalogEntry& entry) {
  if (node.value.is_null()) {
    entry.compiler.erase(node.key);
    return;
  }
  if (!only(node.value, {"value", "source", "date"})) return;
  CompilerFlag flag;
  flag.value = read_sourced(node.value, flag.source, flag.date);
  if (node.key.starts_with('-'))
    add(error(ErrorKind::invalid, "'{}': a flag's name stands without dashes", node.key).at(node.where()));
  entry.compiler[node.key] = std::move(flag);
}

void Reader::read_fact(const Node::Entry& node, CatalogEntry& entry) {
  if (!only(node.value, {"value", "source", "date"})) return;
  Fact fact;
  fact.where = node.where();
  const std::string value = read_sourced(node.value, fact.source, fact.date);
  if (value.empty()) return;
  const Result<CatalogValue> parsed = parse_catalog_value(value);
  if (!parsed.ok()) return add(Error(parsed.error()).at(node.value.find("value")->where()));
  fact.value = parsed->value;
  fact.unit = parsed->unit;
  entry.facts[node.key] = std::move(fact);
}

void Reader::read_entry(const Node::Entry& node) {
  if (!only(node.value, {"kind", "doc", "calibrated", "per", "status", "called", "also", "facts", "compiler"})) return;
  CatalogEntry& entry = entries_[node.key];
  entry.name = node.key;
  read_text(node.value, "kind", entry.kind, entry.kind.empty());
  read_text(node.value, "doc", entry.doc, false);
  read_text(node.value, "per", entry.per, false);
  read_text(node.value, "status", entry.status, false);
  if (const Node* calibrated = node.value.find("calibrated")) {
    const Result<bool> value = calibrated->as_bool();
    if (value.ok())
      entry.calibrated = *value;
    else
      add(value.error());
  }
  read_names(node.value, "called", entry.called);
  read_names(node.value, "also", entry.also);
  if (const Node* facts = node.value.find("facts")) {
    if (!facts->is_map()) return add(facts->wrong("a map of facts"));
    for (const Node::Entry& fact : facts->entries()) read_fact(fact, entry);
  }
  if (const Node* flags = node.value.find("compiler")) {
    if (!flags->is_map()) return add(flags->wrong("a map of flags"));
    for (const Node::Entry& flag : flags->entries()) read_flag(flag, entry);
  }
}

void Reader::read(const CatalogFile& file) {
  const Result<Node> document = parse_yaml(file.text, file.name);
  if (!document.ok()) return add(document.error());
  if (!document->is_map()) return add(document->wrong("a catalog: a map that begins with systole_catalog: 1"));
  const Result<const Node*> version = document->get("systole_catalog");
  if (!version.ok()) return add(version.error());
  const Result<std::int64_t> number = (*version)->as_int(1);
  if (!number.ok()) return add(number.error());
  if (*number > kVersion) {
    return add(error(ErrorKind::unsupported, "a catalog of version {}; this systole reads up to {}", *number, kVersion)
                   .coded(ErrorCode::newer_version)
                   .at((*version)->where()));
  }
  // tables.h reads the rows of tables; a file with rows needs no entries.
  only(*document, {"systole_catalog", "entries", "machines", "slices", "zones", "prices"});
  const bool tables = document->entries().size() > 1;
  if (tables && document->find("entries") == nullptr) return;
  const Result<const Node*> entries = document->get("entries");
  if (!entries.ok()) return add(entries.error());
  if (!(*entries)->is_map()) return add((*entries)->wrong("a map of entries"));
  for (const Node::Entry& entry : (*entries)->entries()) read_entry(entry);
}

Status Reader::finish() {
  if (errors_.empty()) return Done{};
  return together(std::move(errors_));
}

}  // namespace

Result<Catalog> Catalog::read(std::span<const CatalogFile> files) {
  Catalog catalog;
  Reader reader(catalog.entries_);
  Hasher hasher;
  for (const CatalogFile& file : files) {
    reader.read(file);
    hasher.add(std::to_string(file.text.size()) + "\n").add(file.text);
  }
  TRY(reader.finish());
  catalog.hash_ = to_hex(hasher.digest());
  return catalog;
}

}  // namespace systole
