// Reading a Workload: collect what the document, its environment and --set give for each key; read the keys in the
// schema's order, defaults where nothing was given; then the rules over several keys. All errors are kept and told at
// once; a key whose decider ("model.family") could not be read is passed over in silence, and so is the absence of one
// that an unknown key most likely means: misspelt keys are told first.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "describe/spec/excerpt.h"
#include "describe/spec/schema.h"
#include "describe/spec/source.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

struct Given {
  Node value;
  Where key;  // where the key itself stands
};
using GivenByPath = std::map<std::string, Given>;

std::string join(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : section + "." + std::string(name);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

class Reader {
 public:
  explicit Reader(std::string filename) : filename_(std::move(filename)) {}

  Result<Workload> read(const Node& document, const WorkloadOptions& options);
  std::map<std::string, std::vector<Where>> places() const;  // of the keys that were given

 private:
  void collect(const Node& map, const std::string& section, GivenByPath& into);
  void collect_entry(const Node::Entry& entry, const std::string& section, GivenByPath& into);
  void collect_environments(const Node& environments, const std::string& wanted);
  void collect_set(const std::string& set);
  void lay_over(const GivenByPath& overlay);
  void unknown(const Node::Entry& entry, const std::string& section);

  void read_key(const Key& key);
  void read_default(const Key& key);
  void missing(const Key& key);
  void derive_again();
  void check_rules();
  void import_weights(const WorkloadOptions& options);
  void check_imported();

  void add(Error error) { errors_.push_back(std::move(error)); }
  Error all_errors();
  bool failed(const std::string& path) const;
  Where place_of(const std::string& path) const;
  const std::string* preset_default(const std::string& path) const;

  std::string filename_;
  GivenByPath given_;
  std::map<std::string, Where> sections_;
  std::set<std::string> failed_;  // keys that were given wrong or are missing
  std::set<std::string> meant_;   // keys and sections that an unknown key was perhaps to be
  std::vector<Error> misspelt_, errors_;
  std::vector<ImportedValue> imported_;
  Workload workload_;
};

void Reader::unknown(const Node::Entry& entry, const std::string& section) {
  std::vector<std::string> names = schema().names_under(section);
  if (section.empty()) names.emplace_back(kEnvironments);
  const std::vector<std::string> near = nearest(entry.key, names);
  std::string hint;
  if (near.empty()) {
    for (const Key& key : schema().keys) {
      if (last_part(key.path) == entry.key) hint = fmt::format("{} is a key", key.path);
    }
  }
  for (const std::string& name : near) meant_.insert(join(section, name));
  if (hint.empty()) hint = nearest_hint(entry.key, names);
  const std::string under = section.empty() ? "" : fmt::format(" under {}", section);
  (near.empty() ? errors_ : misspelt_)
      .push_back(error(ErrorKind::invalid, "unknown key '{}'{}", entry.key, under).at(entry.where()).hinted(hint));
}

void Reader::collect_entry(const Node::Entry& entry, const std::string& section, GivenByPath& into) {
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

void Reader::collect(const Node& map, const std::string& section, GivenByPath& into) {
  for (const Node::Entry& entry : map.entries()) {
    if (section.empty() && entry.key == kEnvironments) continue;
    collect_entry(entry, section, into);
  }
}

// Every environment is read, so that a misspelt key is found before its day comes; the wanted one is laid over.
void Reader::collect_environments(const Node& environments, const std::string& wanted) {
  if (!environments.is_map()) return add(environments.wrong("a map of environments, each a map of keys"));
  for (const Node::Entry& entry : environments.entries()) {
    GivenByPath overlay;
    if (entry.value.is_map())
      collect(entry.value, "", overlay);
    else
      add(entry.value.wrong("a map of keys"));
    if (entry.key == wanted) lay_over(overlay);
  }
  if (!wanted.empty() && environments.find(wanted) == nullptr) {
    add(error(ErrorKind::invalid, "there is no environment '{}'", wanted)
            .at(environments.where())
            .hinted(nearest_hint(wanted, environments.keys())));
  }
}

void Reader::collect_set(const std::string& set) {
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
  if (node.is_scalar()) node.set_place(place);  // it is all there is: a line and a column would say nothing
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    std::vector<Node::Entry> entries;
    entries.push_back({dot == path.npos ? path : path.substr(dot + 1), std::move(node), place});
    node = Node::map(std::move(entries));
    node.set_place(place);
    path = dot == path.npos ? "" : path.substr(0, dot);
  }
  GivenByPath overlay;
  collect(node, "", overlay);
  lay_over(overlay);
}

// What the overlay gives wins; of a group of keys that exclude each other, it takes the others away.
void Reader::lay_over(const GivenByPath& overlay) {
  for (const auto& [path, given] : overlay) {
    const std::string& group = schema().key(path)->group;
    if (!group.empty()) {
      std::erase_if(given_, [&](const auto& g) { return schema().key(g.first)->group == group; });
    }
  }
  for (const auto& [path, given] : overlay) given_[path] = given;
}

const std::string* value_of(const std::vector<PresetValue>& values, const std::string& path) {
  const auto found = std::ranges::find(values, path, &PresetValue::path);
  return found == values.end() ? nullptr : &found->yaml;
}

// What the weights say, else the preset's value, else the family's. None where the document gives another key of the
// same group.
const std::string* Reader::preset_default(const std::string& path) const {
  const std::string& group = schema().key(path)->group;
  const auto excludes = [&](const auto& given) { return schema().key(given.first)->group == group; };
  if (!group.empty() && std::ranges::any_of(given_, excludes)) return nullptr;
  const auto imported = std::ranges::find(imported_, path, &ImportedValue::path);
  if (imported != imported_.end()) return &imported->yaml;
  if (const std::vector<PresetValue>* values = preset_values(workload_.model.preset)) {
    if (const std::string* yaml = value_of(*values, path)) return yaml;
  }
  for (const FamilyDefaults& family : family_defaults()) {
    if (family.family == workload_.model.family) return value_of(family.values, path);
  }
  return nullptr;
}

// Whether a key was given wrong, is missing, or is what an unknown key was to be.
bool Reader::failed(const std::string& path) const {
  if (failed_.contains(path)) return true;
  return std::ranges::any_of(meant_, [&](const std::string& meant) {
    const bool there = sections_.contains(meant) || given_.contains(meant);  // then something else was meant
    return !there && (path == meant || path.starts_with(meant + "."));
  });
}

void Reader::missing(const Key& key) {
  const bool misspelt = failed(key.path);
  failed_.insert(key.path);
  if (misspelt) return;
  const std::size_t dot = key.path.rfind('.');
  add(error(ErrorKind::invalid, "missing key '{}'", key.path)
          .at(dot == key.path.npos ? Where{filename_, 0, 0} : place_of(key.path.substr(0, dot)))
          .hinted(fmt::format("add {}: {} ({})", last_part(key.path), type_of(key), key.doc)));
}

void Reader::read_default(const Key& key) {
  const std::string* preset = preset_default(key.path);
  if (preset == nullptr && key.derive) return key.derive(workload_);
  if (preset == nullptr && key.optional) return;
  if (preset == nullptr && key.required()) return missing(key);
  const std::string& yaml = preset != nullptr ? *preset : key.default_yaml;
  const Status read = key.codec.read(parse_yaml(yaml, "default").value(), workload_);
  CHECK(read.ok(), "default '{}' of {}: {}", yaml, key.path, read.error().message);
}

void Reader::read_key(const Key& key) {
  if (failed_.contains(key.when.key)) return;
  const auto given = given_.find(key.path);
  const bool here = given != given_.end() && !given->second.value.is_null();
  if (!applies(key, workload_)) {
    if (!here) return;
    failed_.insert(key.path);
    const std::string now = schema().key(key.when.key)->codec.write(workload_).text();
    return add(error(ErrorKind::invalid, "{} means nothing with {}: {}", key.path, key.when.key, now)
                   .at(given->second.key)
                   .hinted(fmt::format("take it out, or {}: {}", key.when.key, fmt::join(key.when.values, " or "))));
  }
  if (!here) return read_default(key);
  Status read = key.codec.read(given->second.value, workload_);
  if (read.ok()) return;
  failed_.insert(key.path);
  Error e = std::move(read).error();
  e.message = fmt::format("{}: {}", key.path, e.message);
  if (e.where.line == 0) e.where = given->second.key;
  if (e.hint.empty()) e.hint = type_of(key);
  add(std::move(e));
}

// A derived default may look at keys that come later in the schema.
void Reader::derive_again() {
  for (const Key& key : schema().keys) {
    if (!key.derive || given_.contains(key.path) || failed_.contains(key.when.key) || !applies(key, workload_))
      continue;
    if (preset_default(key.path) == nullptr) key.derive(workload_);
  }
}

// The place of a key, or of the innermost section around it that the document has, or of the document.
Where Reader::place_of(const std::string& path) const {
  if (const auto given = given_.find(path); given != given_.end()) {
    const Where value = given->second.value.where();
    return value.line > 0 || given->second.key.file.empty() ? value : given->second.key;
  }
  if (const auto section = sections_.find(path); section != sections_.end()) return section->second;
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? Where{filename_, 0, 0} : place_of(path.substr(0, dot));
}

// The tokenizer beside the weights counts only where the document says nothing of tokenizers.
void Reader::import_weights(const WorkloadOptions& options) {
  const auto given = given_.find("model.weights");
  if (!options.weights || given == given_.end() || !given->second.value.is_scalar() || given->second.value.is_null())
    return;
  const auto of_tokenizer = [](const std::string& path) { return path.starts_with("data.tokenizer."); };
  const bool has_tokenizer = std::ranges::any_of(given_, [&](const auto& g) { return of_tokenizer(g.first); });
  Result<std::vector<ImportedValue>> said = options.weights(given->second.value.text());
  if (!said.ok()) {
    failed_.insert("model.weights");
    Error bad = std::move(said).error();
    const std::string file = to_string(bad.where);
    bad.message = fmt::format("model.weights: {}{}", file.empty() ? "" : file + ": ", bad.message);
    bad.where = place_of("model.weights");
    return add(std::move(bad));
  }
  for (ImportedValue& value : *said) {
    if (has_tokenizer && of_tokenizer(value.path)) continue;
    Workload tried;
    const Result<Node> node = parse_yaml(value.yaml, "weights");
    const Status read = node.ok() ? schema().key(value.path)->codec.read(*node, tried) : Status(node.error());
    if (read.ok()) {
      imported_.push_back(std::move(value));
      continue;
    }
    failed_.insert("model.weights");
    add(error(ErrorKind::corrupt, "the weights in '{}' have {}: {}", given->second.value.text(), value.path,
              read.error().message)
            .at(place_of("model.weights"))
            .hinted("copy their config.json again"));
  }
}

// What the document gives beside the weights must be what they are.
void Reader::check_imported() {
  for (const ImportedValue& value : imported_) {
    if (!value.fixed || !given_.contains(value.path) || failed(value.path)) continue;
    const Codec& codec = schema().key(value.path)->codec;
    Workload theirs = workload_;
    const Status read = codec.read(parse_yaml(value.yaml, "weights").value(), theirs);
    if (!read.ok() || codec.write(theirs) == codec.write(workload_)) continue;
    add(error(ErrorKind::invalid, "{} is {}, and the weights in '{}' have {}", value.path,
              codec.write(workload_).text(), workload_.model.weights, codec.write(theirs).text())
            .at(place_of(value.path))
            .hinted(fmt::format("take it out, or {}: {}", last_part(value.path), value.yaml)));
  }
}

void Reader::check_rules() {
  for (const Broken& rule : broken_rules(workload_)) {
    if (std::ranges::any_of(rule.keys, [this](const std::string& key) { return failed(key); })) continue;
    add(Error{rule.kind, rule.message, place_of(rule.keys.front()), rule.hint, {}});
  }
}

Result<Workload> Reader::read(const Node& document, const WorkloadOptions& options) {
  if (!document.is_map()) {
    return document.wrong("a workload: a map that begins with systole: 1")
        .hinted("the keys are in `systole explain keys`; examples/quickstart.yaml is a workload to begin with");
  }
  collect(document, "", given_);
  if (const Node* environments = document.find(kEnvironments)) {
    collect_environments(*environments, options.environment);
  } else if (!options.environment.empty()) {
    add(error(ErrorKind::invalid, "there is no environment '{}': the document has none", options.environment)
            .at({filename_, 0, 0})
            .hinted("leave out --env, or add environments: { " + options.environment + ": { train: { ... } } }"));
  }
  for (const std::string& set : options.sets) collect_set(set);
  import_weights(options);
  if (failed_.contains("model.weights")) return all_errors();  // all that follows would come of it
  for (const Key& key : schema().keys) {
    read_key(key);
    if (key.path == "systole" && failed_.contains("systole") && workload_.version > 1) break;  // of another time
  }
  if (workload_.version <= 1) {
    derive_again();
    check_imported();
    check_rules();
  }
  if (errors_.empty() && misspelt_.empty()) return std::move(workload_);
  return all_errors();
}

// Misspelt keys first, because other errors may come of them; each kind in the document's order.
Error Reader::all_errors() {
  for (std::vector<Error>* kind : {&misspelt_, &errors_})
    std::ranges::stable_sort(*kind, {}, [](const Error& e) { return std::pair(e.where.line, e.where.col); });
  std::ranges::move(errors_, std::back_inserter(misspelt_));
  Error first = std::move(misspelt_.front());
  first.others.assign(std::make_move_iterator(misspelt_.begin() + 1), std::make_move_iterator(misspelt_.end()));
  return first;
}

std::map<std::string, std::vector<Where>> Reader::places() const {
  std::map<std::string, std::vector<Where>> places;
  for (const auto& [path, given] : given_) {
    std::vector<Where>& at = places[path];
    for (const Node& item : given.value.items()) at.push_back(item.where());
    if (at.empty()) at.push_back(place_of(path));
  }
  return places;
}

}  // namespace

Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options) {
  WorkloadSource source;
  return read_workload(text, filename, options, source);
}

Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options,
                               WorkloadSource& source) {
  source = {filename, std::string(text), {}};
  Result<Node> document = parse_yaml(text, filename);
  if (!document.ok()) return with_excerpts(std::move(document).error(), text, filename);
  Reader reader(filename);
  Result<Workload> workload = reader.read(*document, options);
  source.places = reader.places();
  if (!workload.ok()) return with_excerpts(std::move(workload).error(), text, filename);
  return workload;
}

Result<Workload> workload_from(const Node& document, const std::string& filename) {
  return Reader(filename).read(document, {});
}

Node to_node(const Workload& workload) {
  Workload copy = workload;  // codecs write through the reference they read by
  const auto build = [&](auto&& self, const std::string& section) -> Node {
    Node map;
    for (const std::string& name : schema().names_under(section)) {
      const std::string path = join(section, name);
      const Key* key = schema().key(path);
      Node value = key == nullptr ? self(self, path) : applies(*key, copy) ? key->codec.write(copy) : Node();
      if (!value.is_null()) map.set(name, std::move(value));
    }
    return map;
  };
  return build(build, "");
}

std::string to_yaml(const Workload& workload) { return to_yaml(to_node(workload)); }

}  // namespace systole
