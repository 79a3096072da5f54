#include "operate/registry/model_log.h"

#include <algorithm>
#include <tuple>

namespace systole {
namespace {

constexpr std::int64_t kFormat = 1;

Result<std::string> text_in(const Node& line, const char* key) { return TRY(line.get(key))->as_string(); }

Result<std::optional<std::int64_t>> number_in(const Node& line, const char* key, std::int64_t lowest) {
  const Node* node = TRY(line.get(key));
  if (node->is_null()) return std::optional<std::int64_t>();
  return std::optional(TRY(node->as_int(lowest)));
}

Result<ModelStage> stage_in(const Node& line, const char* key) {
  const Node* node = TRY(line.get(key));
  if (const std::optional<ModelStage> stage = model_stage_named(node->text())) return *stage;
  return node->wrong("a stage");
}

Result<std::vector<std::string>> texts_in(const Node& line, const char* key) {
  std::vector<std::string> texts;
  for (const Node& item : TRY(line.get(key))->items()) texts.push_back(TRY(item.as_string()));
  return texts;
}

Error wrong_order(const Node& line) { return line.wrong("a line that follows from those before it"); }

Status read_registration(const Node& line, std::vector<RegisteredModel>& models) {
  RegisteredModel model;
  model.name = TRY(text_in(line, "model"));
  TRY(check_model_name(model.name));
  model.version = TRY(number_in(line, "version", 1)).value_or(0);
  if (model.version != 1 + std::ranges::count(models, model.name, &RegisteredModel::name)) return wrong_order(line);
  model.at = TRY(text_in(line, "at"));
  model.by = TRY(text_in(line, "by"));
  model.path = TRY(text_in(line, "path"));
  model.step = TRY(number_in(line, "step", 0));
  for (const Node::Entry& file : TRY(line.get("sha256"))->entries())
    model.sha256[file.key] = TRY(file.value.as_string());
  model.workload_sha256 = TRY(text_in(line, "workload_sha256"));
  model.plan_sha256 = TRY(text_in(line, "plan_sha256"));
  model.data = TRY(text_in(line, "data"));
  for (const Node& parent : TRY(line.get("parents"))->items()) {
    ModelParent& made = model.parents.emplace_back();
    made.from = TRY(text_in(parent, "from"));
    made.hash = TRY(text_in(parent, "hash"));
  }
  for (const Node::Entry& metric : TRY(line.get("metrics"))->entries())
    model.metrics[metric.key] = TRY(metric.value.as_double());
  models.push_back(std::move(model));
  return {};
}

Status read_promotion(const Node& line, std::vector<RegisteredModel>& models) {
  const std::string name = TRY(text_in(line, "model"));
  const auto find = [&](std::optional<std::int64_t> version) {
    return std::ranges::find_if(models,
                                [&](const RegisteredModel& m) { return m.name == name && m.version == version; });
  };
  Promotion promotion;  // filled one by one: gcc loses what a braced list has made before a TRY that returns
  promotion.at = TRY(text_in(line, "at"));
  promotion.by = TRY(text_in(line, "by"));
  promotion.from = TRY(stage_in(line, "from"));
  promotion.to = TRY(stage_in(line, "to"));
  promotion.required = TRY(texts_in(line, "required"));
  const auto model = find(TRY(number_in(line, "version", 1)));
  if (model == models.end() || model->stage != promotion.from) return wrong_order(line);
  if (const std::optional<std::int64_t> archived = TRY(number_in(line, "archived", 1))) {
    const auto other = find(archived);
    if (other == models.end() || other == model || other->stage != promotion.to) return wrong_order(line);
    other->promotions.push_back({promotion.at, promotion.by, other->stage, ModelStage::archived, {}});
    other->stage = ModelStage::archived;
  }
  model->stage = promotion.to;
  model->promotions.push_back(std::move(promotion));
  return {};
}

Status read_line(const Node& line, std::vector<RegisteredModel>& models) {
  const std::string act = line.text_at("act");
  if (act == "repair") return {};
  const bool known = act == kRegisterAct || act == kPromoteAct;
  if (!known || TRY(TRY(line.get("format"))->as_int(1)) > kFormat) {
    return error(ErrorKind::unsupported, "this line of the models' registry is of a newer systole")
        .coded(ErrorCode::newer_version)
        .hinted("use that one");
  }
  return act == kRegisterAct ? read_registration(line, models) : read_promotion(line, models);
}

}  // namespace

Node register_line(const RegisteredModel& model) {
  const Node all = to_node(model);
  Node line = Node::map({{"format", kFormat}, {"model", model.name}});
  for (const char* key :
       {"version", "path", "step", "sha256", "workload_sha256", "plan_sha256", "data", "parents", "metrics"})
    line.set(key, *all.find(key));
  return line;
}

Node promote_line(const RegisteredModel& model, const Promotion& promotion, std::optional<std::int64_t> archived) {
  Node required = Node::sequence();
  for (const std::string& text : promotion.required) required.push(text);
  return Node::map({{"format", kFormat},
                    {"model", model.name},
                    {"version", model.version},
                    {"from", name_of(promotion.from)},
                    {"to", name_of(promotion.to)},
                    {"required", required},
                    {"archived", archived ? Node(*archived) : Node()}});
}

Result<std::vector<RegisteredModel>> models_in(std::span<const Node> lines, const std::string& file) {
  std::vector<RegisteredModel> models;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Status read = read_line(lines[i], models);
    if (read.ok()) continue;
    Error wrong = std::move(read).error();
    wrong.where = {file, static_cast<int>(i + 1), 0};
    if (wrong.kind != ErrorKind::unsupported) wrong.kind = ErrorKind::corrupt;
    return wrong;
  }
  std::ranges::sort(models, [](const RegisteredModel& a, const RegisteredModel& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  return models;
}

}  // namespace systole
