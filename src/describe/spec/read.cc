// Reading a Workload: collect what the document, its environment and --set give for each key; read the keys in the
// schema's order, with defaults where nothing was given; then check the rules over several keys. All errors are
// reported at once. A key is skipped silently when the key that decides on it ("model.family") could not be read, or
// when it is missing and an unknown key is probably its misspelling. Misspelt keys are reported first.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "describe/spec/excerpt.h"
#include "describe/spec/families/families.h"
#include "describe/spec/given_keys.h"
#include "describe/spec/schema.h"
#include "describe/spec/source.h"
#include "ground/base/errors.h"

namespace systole {
namespace {

std::string join(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : section + "." + std::string(name);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

class Reader {
 public:
  explicit Reader(const std::string& filename) : filename_(filename), given_(filename) {}

  Result<Workload> read(const Node& document, const WorkloadOptions& options);
  std::map<std::string, std::vector<Where>> places() const { return given_.places(); }

 private:
  void read_key(const Key& key);
  void read_default(const Key& key);
  void missing(const Key& key);
  bool beside_command(const Key& key);
  void refuse_beside_command(const Key& key, const GivenValue& given);
  void derive_again();
  void check_rules();
  void import_weights(const WorkloadOptions& options);
  void check_imported();

  void add(Error error) { given_.errors.push_back(std::move(error)); }
  Error all_errors();
  bool failed(const std::string& path) const { return failed_.contains(path) || given_.was_meant(path); }
  const std::string* preset_default(const std::string& path) const;

  std::string filename_;
  GivenKeys given_;
  std::set<std::string> failed_;  // keys that were given wrong values or are missing
  std::vector<ImportedValue> imported_;
  Workload workload_;
};

const std::string* value_of(const std::vector<PresetValue>& values, const std::string& path) {
  const auto found = std::ranges::find(values, path, &PresetValue::path);
  return found == values.end() ? nullptr : &found->yaml;
}

// The default from the weights, else from the preset, else from the family. Null if the document gives another key of
// the same group.
const std::string* Reader::preset_default(const std::string& path) const {
  const std::string& group = schema().key(path)->group;
  if (!group.empty() && given_.has_group(group)) return nullptr;
  const auto imported = std::ranges::find(imported_, path, &ImportedValue::path);
  if (imported != imported_.end()) return &imported->yaml;
  if (const std::vector<PresetValue>* values = preset_values(workload_.model.preset)) {
    if (const std::string* yaml = value_of(*values, path)) return yaml;
  }
  return value_of(family_of(workload_.model).defaults, path);
}

void Reader::missing(const Key& key) {
  const bool misspelt = failed(key.path);
  failed_.insert(key.path);
  if (misspelt) return;
  const std::size_t dot = key.path.rfind('.');
  add(error(ErrorKind::invalid, "missing key '{}'", key.path)
          .coded(ErrorCode::missing_key)
          .about(key.path)
          .at(dot == key.path.npos ? Where{filename_, 0, 0} : given_.place_of(key.path.substr(0, dot)))
          .hinted(fmt::format("add {}: {} ({}){}", last_part(key.path), type_of(key), key.doc,
                              key.path == "model.family" ? "; or command: with a program of your own" : "")));
}

void Reader::read_default(const Key& key) {
  const std::string* preset = preset_default(key.path);
  if (preset == nullptr && key.derive) return key.derive(workload_);
  if (preset == nullptr && key.optional) return;
  if (preset == nullptr && key.required() && given_.contains(key.instead)) return;
  if (preset == nullptr && key.required()) return missing(key);
  const std::string& yaml = preset != nullptr ? *preset : key.default_yaml;
  const Status read = key.codec.read(parse_yaml(yaml, "default").value(), workload_);
  CHECK(read.ok(), "default '{}' of {}: {}", yaml, key.path, read.error().message);
}

// Whether the key does not apply to this kind of workload, or to a user's program, also if `command` was given a wrong
// value.
bool Reader::beside_command(const Key& key) {
  return !goes_with_kind(key, workload_) || (failed_.contains("command") && !goes_with_command(key));
}

// Reports once per section.
void Reader::refuse_beside_command(const Key& key, const GivenValue& given) {
  const std::string section = key.path.substr(0, key.path.find('.'));
  failed_.insert(key.path);
  if (!failed_.insert(section).second && section != key.path) return;
  if (workload_.kind == Workload::Kind::machines)
    return add(error(ErrorKind::invalid, "{} means nothing with workload: machines, of which nothing runs", section)
                   .coded(ErrorCode::conflicting_keys)
                   .about(section)
                   .at(section == key.path ? given.key : given_.place_of(section))
                   .hinted(fmt::format("take out {}, or workload: machines", section)));
  if (workload_.kind == Workload::Kind::serve) {
    const bool in_part = std::ranges::any_of(
        schema().keys, [&](const Key& one) { return one.path.starts_with(section + ".") && goes_with_serving(one); });
    const std::string& named = in_part ? key.path : section;
    return add(error(ErrorKind::invalid, "{} means nothing with workload: serve, which trains nothing", named)
                   .coded(ErrorCode::conflicting_keys)
                   .about(named)
                   .at(named == key.path ? given.key : given_.place_of(section))
                   .hinted(fmt::format("take out {}, or workload: serve", key.path)));
  }
  add(error(ErrorKind::invalid, "{} and command exclude each other: the program brings its own", section)
          .coded(ErrorCode::conflicting_keys)
          .about(section)
          .at(section == key.path ? given.key : given_.place_of(section))
          .hinted(fmt::format("take out {} to run the program, or command to train the model", section)));
}

void Reader::read_key(const Key& key) {
  if (failed_.contains(key.when.key)) return;
  const GivenValue* given = given_.find(key.path);
  const bool here = given != nullptr && !given->value.is_null();
  if (beside_command(key)) {
    if (here) refuse_beside_command(key, *given);
    return;
  }
  if (!applies(key, workload_)) {
    if (!here) return;
    failed_.insert(key.path);
    if (key.when.values.empty()) {
      return add(error(ErrorKind::invalid, "{} means nothing without {}", key.path, key.when.key)
                     .coded(ErrorCode::conflicting_keys)
                     .about(key.path)
                     .at(given->key)
                     .hinted(fmt::format("take it out, or give {}", key.when.key)));
    }
    const Node now = schema().key(key.when.key)->codec.write(workload_);
    const std::string with = !now.is_scalar()     ? "with " + key.when.key + ": a list"
                             : now.text().empty() ? "without " + key.when.key
                                                  : "with " + key.when.key + ": " + std::string(now.text());
    return add(error(ErrorKind::invalid, "{} means nothing {}", key.path, with)
                   .coded(ErrorCode::conflicting_keys)
                   .about(key.path)
                   .at(given->key)
                   .hinted(fmt::format("take it out, or {}: {}", key.when.key, fmt::join(key.when.values, " or "))));
  }
  if (!here) return read_default(key);
  Status read = key.codec.read(given->value, workload_);
  if (read.ok()) return;
  failed_.insert(key.path);
  Error e = std::move(read).error();
  e.message = fmt::format("{}: {}", key.path, e.message);
  e.key = key.path;
  if (e.code == ErrorCode::none) e.code = ErrorCode::unexpected_value;
  if (e.where.file.empty()) e.where = given->key;
  if (e.hint.empty()) e.hint = type_of(key);
  add(std::move(e));
}

// A derived default may depend on keys that come later in the schema.
void Reader::derive_again() {
  for (const Key& key : schema().keys) {
    const GivenValue* given = given_.find(key.path);
    const bool here = given != nullptr && !given->value.is_null();
    if (!key.derive || here || failed_.contains(key.when.key) || !applies(key, workload_)) continue;
    if (preset_default(key.path) == nullptr) key.derive(workload_);
  }
}

// The tokenizer beside the weights is used only if the document has no key of a tokenizer.
void Reader::import_weights(const WorkloadOptions& options) {
  const GivenValue* given = given_.find("model.weights");
  if (!options.weights || given == nullptr || !given->value.is_scalar() || given->value.is_null()) return;
  const auto of_tokenizer = [](const std::string& path) { return path.starts_with("data.tokenizer."); };
  const bool has_tokenizer = std::ranges::any_of(given_.all(), [&](const auto& g) { return of_tokenizer(g.first); });
  Result<std::vector<ImportedValue>> said = options.weights(given->value.text());
  if (!said.ok()) {
    failed_.insert("model.weights");
    Error bad = std::move(said).error();
    const std::string file = to_string(bad.where);
    bad.message = fmt::format("model.weights: {}{}", file.empty() ? "" : file + ": ", bad.message);
    bad.key = "model.weights";
    bad.where = given_.place_of(bad.key);
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
    add(error(ErrorKind::corrupt, "the weights in '{}' have {}: {}", given->value.text(), value.path,
              read.error().message)
            .about("model.weights")
            .at(given_.place_of("model.weights"))
            .hinted("copy their config.json again"));
  }
}

// Values in the document must agree with fixed values of the weights.
void Reader::check_imported() {
  for (const ImportedValue& value : imported_) {
    if (!value.fixed || !given_.contains(value.path) || failed(value.path)) continue;
    const Codec& codec = schema().key(value.path)->codec;
    Workload theirs = workload_;
    const Status read = codec.read(parse_yaml(value.yaml, "weights").value(), theirs);
    if (!read.ok() || codec.write(theirs) == codec.write(workload_)) continue;
    add(error(ErrorKind::invalid, "{} is {}, and the weights in '{}' have {}", value.path,
              codec.write(workload_).text(), workload_.model.weights, codec.write(theirs).text())
            .about(value.path)
            .at(given_.place_of(value.path))
            .hinted(fmt::format("take it out, or {}: {}", last_part(value.path), value.yaml)));
  }
}

void Reader::check_rules() {
  for (const BrokenRule& rule : broken_rules(workload_)) {
    if (std::ranges::any_of(rule.keys, [this](const std::string& key) { return failed(key); })) continue;
    add(error(rule.kind, "{}", rule.message)
            .at(given_.place_of(rule.keys.front()))
            .hinted(rule.hint)
            .about(rule.keys.front()));
  }
}

Result<Workload> Reader::read(const Node& document, const WorkloadOptions& options) {
  if (!document.is_map()) {
    return document.wrong("a workload: a map that begins with systole: 1")
        .hinted("the keys are in `systole explain keys`; examples/quickstart.yaml is a workload to begin with");
  }
  given_.collect(document, options);
  import_weights(options);
  if (failed_.contains("model.weights")) return all_errors();  // all further errors would be consequences
  for (const Key& key : schema().keys) {
    read_key(key);
    if (key.path == "systole" && failed_.contains("systole") && workload_.version > 1) break;  // other keys
  }
  if (workload_.version <= 1) {
    if (!beside_command(*schema().key("model.family"))) {
      derive_again();
      check_imported();
    }
    if (!failed("command")) check_rules();
  }
  if (given_.errors.empty() && given_.misspelt.empty()) return std::move(workload_);
  return all_errors();
}

// Misspelt keys first, because other errors may follow from them; each kind in the document's order.
Error Reader::all_errors() {
  std::vector<Error> all = std::move(given_.misspelt);
  std::vector<Error>& others = given_.errors;
  for (std::vector<Error>* kind : {&all, &others})
    std::ranges::stable_sort(*kind, {}, [](const Error& e) { return std::pair(e.where.line, e.where.col); });
  std::ranges::move(others, std::back_inserter(all));
  return together(std::move(all));
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

Result<Workload> workload_from(const Node& document, const std::string& filename, const WorkloadOptions& options) {
  return Reader(filename).read(document, options);
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
