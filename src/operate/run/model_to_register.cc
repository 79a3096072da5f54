#include "operate/run/model_to_register.h"

#include <cmath>
#include <filesystem>

#include "execute/checkpoint/retention.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/files.h"
#include "ground/base/utf8.h"
#include "ground/store/sha256.h"
#include "operate/observe/run_files.h"
#include "operate/run/job_lock.h"
#include "operate/run/model_artifact.h"
#include "operate/run/served_model.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

Result<std::string> whole_path(const std::string& path) {
  std::string absolute = TRY(absolute_path(path));
  while (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

Status check_utf8(const std::string& path) {
  if (!find_invalid_utf8(path)) return {};
  return error(ErrorKind::invalid, "'{}' is not UTF-8, and the registry could not find it again",
               replace_invalid_utf8(path))
      .hinted("rename it");
}

Result<std::string> recorded_path(const std::string& path) {
  const std::string absolute = TRY(whole_path(path));
  const fs::path below = fs::path(absolute).lexically_relative(TRY(working_folder()));
  std::string recorded = below.empty() || *below.begin() == ".." ? absolute : below.string();
  TRY(check_utf8(recorded));
  return recorded;
}

// `given`, or without one `own`.
Result<std::string> name_of_model(const std::string& given, const std::string& own) {
  const std::string& name = given.empty() ? own : given;
  const Status good = check_model_name(name);
  if (good.ok()) return name;
  Error wrong = good.error();
  if (given.empty()) wrong.hint = "--name NAME: " + wrong.hint;
  return wrong;
}

Result<std::string> sha256_if_there(const std::string& file) {
  if (!path_exists(file)) return std::string();
  return sha256_of_file(file);
}

std::map<std::string, double> metrics_at(const RunRecord& record, std::int64_t step) {
  std::map<std::string, double> metrics;
  const auto keep = [&](const char* name, double value) {
    if (std::isfinite(value)) metrics[name] = value;
  };
  for (const StepEnded& ended : canonical_steps(record.processes))
    if (ended.step <= step) keep("loss", ended.loss);
  std::int64_t last = 0;
  for (const Event& event : record.all()) {
    const auto* evaluated = std::get_if<Evaluated>(&event.body);
    if (evaluated == nullptr || evaluated->step > step || evaluated->step < last) continue;
    last = evaluated->step;
    keep("held_out_loss", evaluated->loss);
    if (evaluated->bits_per_byte) keep("bits_per_byte", *evaluated->bits_per_byte);
  }
  return metrics;
}

Result<RegisteredModel> checkpoint_to_register(const std::string& asked, const std::string& name) {
  const RunPlace run = TRY(open_run(parse_checkpoint_reference(asked).run));
  const Workload workload = TRY(workload_of(run));
  RegisteredModel model;
  model.name = TRY(name_of_model(name, workload.name));
  model.path = TRY(recorded_path(run.path));
  const CheckpointPlace place = TRY(find_checkpoints(asked));
  const std::int64_t step = TRY(open_checkpoint(place)).manifest().step;
  TRY(checkpoint::bless(place.folder, step));
  model.step = step;
  model.sha256 = TRY(hashes_of_checkpoint(place, step, run.path));
  model.workload_sha256 = TRY(sha256_if_there(run.path + "/" + RunFiles::workload));
  model.plan_sha256 = TRY(sha256_if_there(run.path + "/" + RunFiles::plan));
  const RecordedInputs inputs = TRY(recorded_inputs(run.path));
  model.data = inputs.dataset;
  if (!workload.resume.from.empty()) model.parents.push_back({workload.resume.from, ""});
  if (!workload.model.weights.empty()) model.parents.push_back({workload.model.weights, inputs.weights});
  model.metrics = metrics_at(TRY(record_of(run)), step);
  return model;
}

Result<RegisteredModel> folder_to_register(const std::string& path, const std::string& name) {
  const fs::path absolute = TRY(whole_path(path));
  RegisteredModel model;
  model.name = TRY(name_of_model(name, (is_gguf(path) ? absolute.stem() : absolute.filename()).string()));
  model.path = TRY(recorded_path(path));
  TRY(find_model(path));  // it can be opened
  model.sha256 = TRY(hashes_of_folder(model.path));
  for (const auto& [file, hash] : model.sha256) TRY(check_utf8(file));
  return model;
}

}  // namespace

Result<RegisteredModel> model_to_register(const std::string& asked, const std::string& name) {
  if (names_registered_model(asked)) {
    return error(ErrorKind::invalid, "'{}' is registered already", asked)
        .hinted("systole models promote moves its stage; a run or a folder is registered");
  }
  return is_gguf(asked) || is_hf_folder(asked) ? folder_to_register(asked, name) : checkpoint_to_register(asked, name);
}

}  // namespace systole
