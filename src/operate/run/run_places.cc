#include "operate/run/run_places.h"

#include <filesystem>

#include "ground/base/errors.h"
#include "ground/base/number_from.h"
#include "ground/base/shell_quoted.h"
#include "operate/observe/run_files.h"

namespace systole {

Result<RunPlace> open_run(const std::string& asked) {
  RunPlace place;
  place.path = TRY(find_run(kRunsFolder, asked));
  place.store = TRY(open_posix_store(place.path));
  return place;
}

Result<RunRecord> record_of(const RunPlace& run) {
  Result<RunRecord> record = read_run(*run.store, "");
  if (record.ok()) return record;
  Error e = below(run.path, std::move(record).error());
  if (e.kind == ErrorKind::corrupt && e.hint.empty())
    e.hint = "copy the file back; without that line, or without the file, the rest can be read";
  return e;
}

Result<Workload> kept_workload(Store& run, const std::string& path) {
  return read_workload(TRY(read_text(run, RunFiles::workload)), path + "/" + RunFiles::workload);
}

Result<Workload> trained_workload_of(const RunPlace& run) {
  Workload workload = TRY(workload_of(run));
  if (workload.has_model()) return workload;
  return error(ErrorKind::invalid,
               "'{}' is of a program of your own (command): its model and checkpoints are not known here", run.path)
      .hinted(fmt::format("name a run of a model: 'systole runs' lists those there are; {}/logs has what it printed",
                          run.path));
}

Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec) {
  return checkpoint::read_keys(key_refs_of(spec));
}

std::vector<MissingKey> missing_keys(const CheckpointSpec& spec) {
  constexpr std::string_view kFile = "file:";
  std::vector<MissingKey> missing;
  const auto look = [&](const char* key, const std::string& ref, const checkpoint::KeyRefs& alone) {
    std::error_code none;
    if (ref.starts_with(kFile) && std::filesystem::is_fifo(ref.substr(kFile.size()), none)) return;
    const auto keys = checkpoint::read_keys(alone, checkpoint::KeysFor::a_new_run);
    if (!keys.ok()) missing.push_back({key, keys.error()});
  };
  look("checkpoint.encryption_key", spec.encryption_key, {spec.encryption_key, "", ""});
  look("checkpoint.signing_key", spec.signing_key, {"", spec.signing_key, ""});
  return missing;
}

namespace {

// Before the first save, a folder of this machine has a folder for the manifests.
Result<bool> is_checkpoint_folder(const CheckpointHome& home) {
  if (!home.local.empty()) return TRY(open_posix_store(home.local))->exists("manifests");
  return !TRY(checkpoint::list_steps(home.folder)).empty();
}

}  // namespace

Result<std::optional<CheckpointPlace>> checkpoints_in(const std::string& folder, const checkpoint::KeyRefs& keys) {
  if (folder.empty()) return std::optional<CheckpointPlace>();
  const StoreUri uri = TRY(read_store_uri(folder));
  if (!uri.is_lasting()) return std::optional<CheckpointPlace>();
  Result<CheckpointHome> home = home_at(uri);
  if (!home.ok() && (home.error().kind == ErrorKind::io || !uri.is_local())) return std::move(home).error();
  if (!home.ok() || !TRY(is_checkpoint_folder(*home))) return std::optional<CheckpointPlace>();
  CheckpointPlace place{*std::move(home), std::nullopt};
  place.folder.keys = TRY(checkpoint::read_keys(keys));
  return std::optional(std::move(place));
}

Result<CheckpointPlace> checkpoints_of(const std::string& run, const CheckpointSpec& spec,
                                       const checkpoint::KeyRefs& keys) {
  CheckpointPlace place{TRY(checkpoint_home(run, spec, Absent::is_an_error)), std::nullopt};
  place.folder.keys = TRY(checkpoint::read_keys(keys));
  return place;
}

CheckpointReference parse_checkpoint_reference(const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at == text.npos || text.find('/', at) != text.npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<CheckpointPlace> find_checkpoints(const std::string& asked, const checkpoint::KeyRefs& given) {
  std::optional<std::int64_t> wanted;
  const auto [name, step] = parse_checkpoint_reference(asked);
  if (step) {
    wanted = number_from(*step);
    if (wanted.value_or(-1) < 0)
      return error(ErrorKind::invalid, "'{}' names no step after the @", asked).hinted("as in quickstart-1@500");
  }
  if (std::optional<CheckpointPlace> folder = TRY(checkpoints_in(name, given))) {
    folder->step = wanted;
    return std::move(*folder);
  }
  const RunPlace run = TRY(open_run(name));
  const CheckpointSpec spec = TRY(trained_workload_of(run)).checkpoint;
  const bool none = given.encryption.empty() && given.signing.empty() && given.trusted.empty();
  CheckpointPlace of_run = TRY(checkpoints_of(run.path, spec, none ? key_refs_of(spec) : given));
  of_run.step = wanted;
  return of_run;
}

Error told_in(const CheckpointPlace& place, Error error) {
  if (error.hint.empty() && error.kind == ErrorKind::not_found)
    error.hint = "a run saves every checkpoint.every and at its end; `systole ckpt list` lists what there is";
  if (error.hint.empty() && error.kind == ErrorKind::corrupt)
    error.hint = "`systole ckpt verify` says what is damaged; copy it back, or name another step";
  return below(place.root, std::move(error));
}

Error passed_over(const checkpoint::Rejected& rejected, const std::string& root, const std::string& verified) {
  Error told = below(root, rejected.reason);
  told.message = fmt::format("the checkpoint of step {} was passed over: {}", rejected.step, told.message);
  if (told.hint.empty()) told.hint = fmt::format("`systole ckpt verify {}` tells of all of them", shell_word(verified));
  return told;
}

Result<checkpoint::Checkpoint> open_checkpoint(const CheckpointPlace& place) {
  if (place.step) {
    Result<checkpoint::Checkpoint> step = checkpoint::open_step(place.folder, *place.step);
    if (!step.ok()) return told_in(place, std::move(step).error());
    return step;
  }
  Result<checkpoint::Restored> newest = checkpoint::open_newest(place.folder);
  if (!newest.ok()) return told_in(place, std::move(newest).error());
  return std::move(newest->checkpoint);
}

}  // namespace systole
