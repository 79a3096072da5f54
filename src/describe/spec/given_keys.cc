#include "describe/spec/given_keys.h"

#include <algorithm>

#include "describe/spec/schema.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

constexpr std::size_t kMostUnknown = 100;  // listed one by one; a document of 4 MiB may have half a million

std::string join(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : section + "." + std::string(name);
}

}  // namespace

void GivenKeys::unknown(const Node::Entry& entry, const std::string& section) {
  if (++unknown_ > kMostUnknown) return;
  std::vector<std::string> names = schema().names_under(section);
  if (section.empty()) names.emplace_back(kEnvironments);
  const std::vector<std::string> near = nearest(entry.key, names);
  std::string hint;
  if (near.empty()) {
    for (const Key& key : schema().keys) {
      if (key.path.substr(key.path.rfind('.') + 1) == entry.key)
        hint = fmt::format("{} is a key{}", key.path, key.path == entry.key ? " at the top level" : "");
    }
  }
  for (const std::string& name : near) meant_.insert(join(section, name));
  if (hint.empty()) hint = nearest_hint(entry.key, names);
  const std::string under = section.empty() ? "" : fmt::format(" under {}", section);
  (near.empty() ? errors : misspelt)
      .push_back(error(ErrorKind::invalid, "unknown key '{}'{}", entry.key, under)
                     .at(entry.where())
                     .hinted(hint)
                     .coded(ErrorCode::unknown_key)
                     .about(join(section, entry.key)));
}

void GivenKeys::collect_entry(const Node::Entry& entry, const std::string& section, ByPath& into) {
  const std::string path = join(section, entry.key);
  if (schema().key(path) != nullptr) {
    into[path] = {entry.value, entry.where()};
    return;
  }
  const Section* known = schema().section(path);
  if (known == nullptr) return unknown(entry, section);
  sections_[path] = entry.where();
  if (entry.value.is_map()) return collect(entry.value, path, into);
  if (entry.value.is_null()) return;
  if (!known->shorthand || !entry.value.is_scalar()) {
    return add(entry.value.wrong(fmt::format("a map of keys of {}", path)));
  }
  if (const Result<Node> map = known->shorthand(entry.value); map.ok())
    collect(*map, path, into);
  else
    add(map.error());
}

void GivenKeys::collect(const Node& map, const std::string& section, ByPath& into) {
  for (const Node::Entry& entry : map.entries()) {
    if (section.empty() && entry.key == kEnvironments) continue;
    collect_entry(entry, section, into);
  }
}

// Reads every environment, so that misspelt keys are found early; only the wanted one overrides the document.
void GivenKeys::collect_environments(const Node& environments, const std::string& wanted) {
  if (!environments.is_map()) return add(environments.wrong("a map of environments, each a map of keys"));
  for (const Node::Entry& entry : environments.entries()) {
    ByPath overlay;
    std::map<std::string, Where> own = sections_;
    if (entry.value.is_map())
      collect(entry.value, "", overlay);
    else
      add(entry.value.wrong("a map of keys"));
    // What is missing in the document is not missing here, unless this is laid over and brings the section.
    own.swap(sections_);
    if (entry.key != wanted) continue;
    lay_over(overlay);
    for (const auto& [path, where] : own)
      if (!meant_.contains(path)) sections_.try_emplace(path, where);
  }
  if (!wanted.empty() && environments.find(wanted) == nullptr) {
    add(error(ErrorKind::invalid, "there is no environment '{}'", wanted)
            .coded(ErrorCode::no_such_environment)
            .at(environments.where())
            .hinted(nearest_hint(wanted, environments.keys())));
  }
}

void GivenKeys::collect_set(const std::string& set) {
  const std::string file = "--set " + set;
  const std::size_t equals = set.find('=');
  if (equals == set.npos || equals == 0) {
    return add(error(ErrorKind::invalid, "'{}' is no setting", set).hinted("such as --set train.time=15s"));
  }
  Result<Node> value = parse_yaml(std::string_view(set).substr(equals + 1), file);
  if (!value.ok()) return add(value.error());
  // a.b=v is { a: { b: v } }
  Node node = *std::move(value);
  std::string path = set.substr(0, equals);
  const Node::Place place{std::make_shared<const std::string>(file), 0, 0};
  if (node.is_scalar()) node.set_place(place);  // a scalar has no place within the option
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    std::vector<Node::Entry> entries;
    entries.push_back({dot == path.npos ? path : path.substr(dot + 1), std::move(node), place});
    node = Node::map(std::move(entries));
    node.set_place(place);
    path = dot == path.npos ? "" : path.substr(0, dot);
  }
  ByPath overlay;
  collect(node, "", overlay);
  lay_over(overlay);
}

// The overlay's values win. A key of an exclusive group also removes the other keys of its group.
void GivenKeys::lay_over(const ByPath& overlay) {
  for (const auto& [path, given] : overlay) {
    const std::string& group = schema().key(path)->group;
    if (!group.empty()) {
      std::erase_if(given_, [&](const auto& g) { return schema().key(g.first)->group == group; });
    }
  }
  for (const auto& [path, given] : overlay) given_[path] = given;
}

void GivenKeys::collect(const Node& document, const WorkloadOptions& options) {
  collect(document, "", given_);
  if (const Node* environments = document.find(kEnvironments)) {
    collect_environments(*environments, options.environment);
  } else if (!options.environment.empty()) {
    add(error(ErrorKind::invalid, "there is no environment '{}': the document has none", options.environment)
            .coded(ErrorCode::no_such_environment)
            .at({filename_, 0, 0})
            .hinted("leave out --env, or add environments: { " + options.environment + ": { train: { ... } } }"));
  }
  for (const std::string& set : options.sets) collect_set(set);
  if (unknown_ > kMostUnknown)
    add(error(ErrorKind::invalid, "and {} more unknown keys", unknown_ - kMostUnknown).at({filename_, 0, 0}));
}

const GivenValue* GivenKeys::find(const std::string& path) const {
  const auto found = given_.find(path);
  return found == given_.end() ? nullptr : &found->second;
}

bool GivenKeys::has_group(const std::string& group) const {
  return std::ranges::any_of(given_, [&](const auto& given) { return schema().key(given.first)->group == group; });
}

bool GivenKeys::was_meant(const std::string& path) const {
  return std::ranges::any_of(meant_, [&](const std::string& meant) {
    const bool there = sections_.contains(meant) || given_.contains(meant);  // then not by the unknown key
    return !there && (path == meant || path.starts_with(meant + "."));
  });
}

Where GivenKeys::place_of(const std::string& path) const {
  if (const auto given = given_.find(path); given != given_.end()) {
    const Where value = given->second.value.where();
    return value.line > 0 || given->second.key.file.empty() ? value : given->second.key;
  }
  if (const auto section = sections_.find(path); section != sections_.end()) return section->second;
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? Where{filename_, 0, 0} : place_of(path.substr(0, dot));
}

// Of a value that is a map, as `volumes` is.
static void add_entries(const std::string& path, const Node& value, std::map<std::string, std::vector<Where>>& places) {
  for (const Node::Entry& entry : value.entries()) {
    const std::string key = path + "." + entry.key;
    places[key] = {entry.value.where()};
    add_entries(key, entry.value, places);
  }
}

std::map<std::string, std::vector<Where>> GivenKeys::places() const {
  std::map<std::string, std::vector<Where>> places;
  for (const auto& [path, given] : given_) {
    std::vector<Where>& at = places[path];
    for (const Node& item : given.value.items()) at.push_back(item.where());
    if (at.empty()) at.push_back(place_of(path));
    add_entries(path, given.value, places);
  }
  return places;
}

}  // namespace systole
