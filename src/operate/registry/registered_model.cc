#include "operate/registry/registered_model.h"

#include <algorithm>
#include <array>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::string_view kPrefix = "models:";
constexpr std::size_t kLongestName = 100;
constexpr std::array<const char*, 4> kStages{"none", "staging", "production", "archived"};

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

Node node_of(const Promotion& promotion) {
  Node required = Node::sequence();
  for (const std::string& text : promotion.required) required.push(text);
  return Node::map({{"at", promotion.at},
                    {"by", promotion.by},
                    {"from", name_of(promotion.from)},
                    {"to", name_of(promotion.to)},
                    {"required", required}});
}

// `newest`: the last version of the name; they begin with 1.
Error no_such_version(std::int64_t newest, const ModelReference& reference) {
  const std::string& name = reference.name;
  if (reference.version) {
    return error(ErrorKind::not_found, "'{}' has no version {}: the newest is {}", name, *reference.version, newest)
        .hinted(fmt::format("systole models list {}", name));
  }
  if (reference.stage) {
    return error(ErrorKind::not_found, "no version of '{}' has the stage {}", name, name_of(*reference.stage))
        .hinted(fmt::format("systole models promote {}:{} --to {}", name, newest, name_of(*reference.stage)));
  }
  return error(ErrorKind::not_found, "{} of '{}' is archived", newest == 1 ? "the only version" : "every version", name)
      .hinted(fmt::format("name the version: models:{}:{}", name, newest));
}

}  // namespace

const char* name_of(ModelStage stage) { return kStages[static_cast<std::size_t>(stage)]; }

std::optional<ModelStage> model_stage_named(std::string_view name) {
  for (std::size_t i = 0; i < kStages.size(); ++i)
    if (name == kStages[i]) return static_cast<ModelStage>(i);
  return std::nullopt;
}

bool is_for_one(ModelStage stage) { return stage == ModelStage::staging || stage == ModelStage::production; }

std::string RegisteredModel::id() const { return fmt::format("{}:{}", name, version); }

std::string RegisteredModel::source() const { return step ? fmt::format("step {} of {}", *step, path) : path; }

Node to_node(const RegisteredModel& model) {
  Node files = Node::map(), metrics = Node::map(), parents = Node::sequence(), promotions = Node::sequence();
  for (const auto& [file, hash] : model.sha256) files.set(file, hash);
  for (const auto& [metric, value] : model.metrics) metrics.set(metric, value);
  for (const ModelParent& parent : model.parents)
    parents.push(Node::map({{"from", parent.from}, {"hash", parent.hash}}));
  for (const Promotion& promotion : model.promotions) promotions.push(node_of(promotion));
  return Node::map({{"name", model.name},
                    {"version", model.version},
                    {"stage", name_of(model.stage)},
                    {"registered_at", model.at},
                    {"by", model.by},
                    {"path", model.path},
                    {"step", model.step ? Node(*model.step) : Node()},
                    {"sha256", files},
                    {"workload_sha256", model.workload_sha256},
                    {"plan_sha256", model.plan_sha256},
                    {"data", model.data},
                    {"parents", parents},
                    {"metrics", metrics},
                    {"promotions", promotions}});
}

bool names_registered_model(std::string_view argument) { return argument.starts_with(kPrefix); }

Status check_model_name(std::string_view name) {
  const bool good =
      !name.empty() && name.size() <= kLongestName && is_letter_or_digit(name[0]) &&
      std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
  if (good) return {};
  return error(ErrorKind::invalid, "'{}' is no name of a model", name.substr(0, kLongestName))
      .hinted(fmt::format("letters, digits, '.', '_' and '-', at most {}, as in summaries-small", kLongestName));
}

Result<ModelReference> parse_model_reference(std::string_view text) {
  std::string_view rest = text;
  if (names_registered_model(rest)) rest.remove_prefix(kPrefix.size());
  ModelReference reference;
  const std::size_t mark = rest.find_first_of(":@");
  reference.name = rest.substr(0, mark);
  TRY(check_model_name(reference.name));
  if (mark == rest.npos) return reference;
  const std::string_view which = rest.substr(mark + 1);
  if (rest[mark] == ':') {
    reference.version = number_from(which);
    if (reference.version.value_or(0) < 1)
      return error(ErrorKind::invalid, "'{}' names no version after the ':'", text).hinted("as in models:tiny:2");
    return reference;
  }
  reference.stage = model_stage_named(which);
  if (!reference.stage) {
    const std::vector<std::string> stages(kStages.begin(), kStages.end());
    return error(ErrorKind::invalid, "'{}' names no stage after the '@'", text).hinted(nearest_hint(which, stages));
  }
  return reference;
}

Result<const RegisteredModel*> find_model_in(std::span<const RegisteredModel> models, const ModelReference& reference) {
  std::int64_t newest = 0;
  const RegisteredModel* found = nullptr;
  for (const RegisteredModel& model : models) {
    if (model.name != reference.name) continue;
    newest = model.version;  // they ascend
    const bool fits = reference.version ? model.version == *reference.version
                      : reference.stage ? model.stage == *reference.stage
                                        : model.stage != ModelStage::archived;
    if (fits) found = &model;
  }
  if (found != nullptr) return found;
  if (newest > 0) return no_such_version(newest, reference);
  std::vector<std::string> names;
  for (const RegisteredModel& model : models)
    if (names.empty() || names.back() != model.name) names.push_back(model.name);
  return error(ErrorKind::not_found, "there is no registered model '{}'", reference.name)
      .coded(ErrorCode::no_such_name)
      .hinted(names.empty() ? fmt::format("systole models register RUN --name {}", reference.name)
                            : nearest_hint(reference.name, names));
}

}  // namespace systole
