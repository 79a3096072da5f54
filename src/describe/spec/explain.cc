// The schema as text for people: `systole explain <key>` and docs/reference/keys.md.
#include <algorithm>

#include "describe/spec/families/families.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

std::string default_of(const Key& key) {
  std::string text = !key.default_yaml.empty() ? key.default_yaml
                     : !key.derived.empty()    ? key.derived
                     : key.optional            ? "none"
                                               : "required";
  for (const ModelFamily& family : model_families()) {
    for (const PresetValue& value : family.defaults) {
      if (value.path == key.path) text += fmt::format("; {} with family {}", value.yaml, family.name());
    }
  }
  return text;
}

std::string condition_of(const Key& key) {
  if (key.when.key.empty()) return {};
  if (key.when.values.empty()) return fmt::format("with {}", key.when.key);
  return fmt::format("with {}: {}", key.when.key, fmt::join(key.when.values, " or "));
}

std::string explain(const Key& key) {
  std::string text = fmt::format("{}   {}\n  {}\n", key.path, type_of(key), key.doc);
  if (!key.more.empty()) text += fmt::format("  {}\n", key.more);
  text += fmt::format("  default: {}\n", default_of(key));
  if (const std::string condition = condition_of(key); !condition.empty())
    text += fmt::format("  only {}\n", condition);
  if (!key.group.empty()) {
    std::vector<std::string> mates;
    for (const Key& k : schema().keys) {
      if (k.group == key.group && k.path != key.path) mates.push_back(k.path);
    }
    text += fmt::format("  excludes {}\n", fmt::join(mates, ", "));
  }
  return text;
}

std::string explain(const Section& section) {
  std::string text = fmt::format("{}\n  {}\n", section.path.empty() ? "a workload" : section.path, section.doc);
  if (!section.shorthand_doc.empty()) text += fmt::format("  or {}\n", section.shorthand_doc);
  std::size_t widest = 0;
  const std::vector<std::string> names = schema().names_under(section.path);
  for (const std::string& name : names) widest = std::max(widest, name.size());
  for (const std::string& name : names) {
    const std::string path = section.path.empty() ? name : section.path + "." + name;
    const Key* key = schema().key(path);
    text += fmt::format("    {:<{}}  {}\n", name, widest, key != nullptr ? key->doc : schema().section(path)->doc);
  }
  return text;
}

std::string all_keys() {
  std::string text;
  for (const Key& key : schema().keys) text += fmt::format("{:<32} {}\n", key.path, key.doc);
  return text;
}

bool ends_with_part(const std::string& path, std::string_view part) {
  return path == part ||
         (path.size() > part.size() && path.ends_with(part) && path[path.size() - part.size() - 1] == '.');
}

std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string row(const Key& key) {
  std::string doc = key.doc;
  if (!key.more.empty()) doc += " " + key.more;
  if (const std::string condition = condition_of(key); !condition.empty()) doc += " Only " + condition + ".";
  return fmt::format("| `{}` | {} | {} | {} |\n", key.path, cell(type_of(key)), cell(default_of(key)), cell(doc));
}

constexpr const char* kHead = "| key | value | default | |\n|---|---|---|---|\n";

std::string section_of(const Key& key) {
  const std::size_t dot = key.path.rfind('.');
  return dot == key.path.npos ? "" : key.path.substr(0, dot);
}

}  // namespace

Result<std::string> explain_key(std::string_view topic) {
  if (topic == "keys") return all_keys();
  if (const Key* key = schema().key(topic)) return explain(*key);
  if (const Section* section = schema().section(topic)) return explain(*section);
  std::string found;
  std::vector<std::string> paths, parts;
  for (const Key& key : schema().keys) {
    if (ends_with_part(key.path, topic)) found += explain(key);
    paths.push_back(key.path);
    parts.push_back(key.path.substr(key.path.rfind('.') + 1));
  }
  for (const Section& section : schema().sections) {
    if (section.path.empty()) continue;  // the document
    if (ends_with_part(section.path, topic)) found += explain(section);
    paths.push_back(section.path);
  }
  if (!found.empty()) return found;
  const std::vector<std::string>& near = nearest(topic, paths).empty() ? parts : paths;
  return error(ErrorKind::not_found, "'{}' is no key of a workload", topic)
      .hinted(nearest(topic, near).empty() ? "systole explain keys lists all" : nearest_hint(topic, near));
}

std::string keys_reference() {
  std::string text =
      "# Keys of a workload\n\n"
      "Printed from the schema (`src/describe/spec/schema.cc`); a test fails when this page is stale.\n"
      "Units are part of a value: `512MiB` is 512 × 2²⁰ bytes, `512MB` 512 × 10⁶; `90s`, `15min`, `2h`; counts may be\n"
      "written `300M` or `1.5B`. `environments:` holds maps of keys by name; `--env NAME` lays one over the document,\n"
      "`--set key=value` a single key.\n";
  std::string section = "none yet";
  for (const Key& key : schema().keys) {
    if (section_of(key) != section) {
      section = section_of(key);
      const Section* s = schema().section(section);
      text += section.empty() ? "\n## The document\n\n" : fmt::format("\n## {}\n\n{}\n", section, s->doc);
      if (!s->shorthand_doc.empty()) text += fmt::format("\nIn place of the map, {}.\n", s->shorthand_doc);
      text += section.empty() ? "" : "\n";
      text += kHead;
    }
    text += row(key);
  }
  return text;
}

std::string keys_table(std::span<const std::string> prefixes) {
  std::string rows;
  for (const Key& key : schema().keys)
    if (std::ranges::any_of(prefixes, [&](const std::string& prefix) { return key.path.starts_with(prefix); }))
      rows += row(key);
  return rows.empty() ? "" : kHead + rows;
}

}  // namespace systole
