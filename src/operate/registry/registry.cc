#include "operate/registry/registry.h"

#include <algorithm>
#include <functional>

#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "operate/cluster/audit.h"
#include "operate/registry/model_log.h"

namespace systole {
namespace {

std::string folder_of(const std::string& runs) { return runs + "/.models"; }
std::string file_of(const std::string& runs) { return folder_of(runs) + "/audit.jsonl"; }

Error told(Error error, const std::string& runs) {
  if (error.kind == ErrorKind::corrupt) {
    error.message = "the registry of models is damaged: " + error.message;
    error.hint =
        fmt::format("copy the file back, or begin a new registry: mv {0} {0}.damaged", shell_word(file_of(runs)));
  }
  return error;
}

Result<std::vector<RegisteredModel>> models_of(std::span<const Node> lines, const std::string& runs) {
  return models_in(lines, file_of(runs));
}

// Appends one line; `more` makes it from the models there are.
Status append(const std::string& runs, const char* act, const std::string& run, Clock& clock,
              const std::function<Result<Node>(const std::vector<RegisteredModel>& models)>& more) {
  TRY(make_folders(folder_of(runs)));
  Audit audit(folder_of(runs), clock);
  Result<std::string> done = audit.append_after(
      act, run, [&](std::span<const Node> lines) -> Result<Node> { return more(TRY(models_of(lines, runs))); });
  if (!done.ok()) return told(std::move(done).error(), runs);
  return {};
}

}  // namespace

Result<std::vector<RegisteredModel>> registered_models(const std::string& runs) {
  const Result<std::vector<Node>> lines = read_audit(folder_of(runs));
  if (!lines.ok()) return told(lines.error(), runs);
  Result<std::vector<RegisteredModel>> models = models_of(*lines, runs);
  if (!models.ok()) return told(std::move(models).error(), runs);
  return models;
}

Result<RegisteredModel> find_registered(const std::string& runs, const ModelReference& reference) {
  const std::vector<RegisteredModel> models = TRY(registered_models(runs));
  return RegisteredModel(*TRY(find_model_in(models, reference)));
}

Result<RegisteredModel> register_model(const std::string& runs, const RegisteredModel& model, Clock& clock) {
  TRY(check_model_name(model.name));
  RegisteredModel next = model;
  TRY(append(runs, kRegisterAct, model.step ? model.path : "", clock,
             [&](const std::vector<RegisteredModel>& models) -> Result<Node> {
               next.version = 1 + std::ranges::count(models, next.name, &RegisteredModel::name);
               return register_line(next);
             }));
  return find_registered(runs, {next.name, next.version, {}});
}

Result<Promoted> promote_model(const std::string& runs, const ModelReference& reference, ModelStage to,
                               std::span<const Requirement> requirements, Clock& clock) {
  Promoted promoted;
  TRY(append(runs, kPromoteAct, "", clock, [&](const std::vector<RegisteredModel>& models) -> Result<Node> {
    const RegisteredModel& model = *TRY(find_model_in(models, reference));
    Promotion promotion{"", "", model.stage, to, {}};
    std::vector<Error> refused;
    for (const Requirement& requirement : requirements) {
      promotion.required.push_back(requirement.text);
      if (std::optional<Error> why = unmet(requirement, model.metrics, model.id())) refused.push_back(std::move(*why));
    }
    if (!refused.empty()) return together(std::move(refused));
    promoted.from = model.stage;
    promoted.model = model;
    for (const RegisteredModel& other : models)
      if (is_for_one(to) && other.name == model.name && other.version != model.version && other.stage == to)
        promoted.archived = other.version;
    return promote_line(model, promotion, promoted.archived);
  }));
  promoted.model = TRY(find_registered(runs, {promoted.model.name, promoted.model.version, {}}));
  return promoted;
}

}  // namespace systole
