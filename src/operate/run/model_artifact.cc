#include "operate/run/model_artifact.h"

#include <algorithm>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/store/sha256.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

using Hashes = std::map<std::string, std::string>;
using Kind = ArtifactState::Kind;

bool is_hidden(const std::filesystem::path& relative) {
  return std::ranges::any_of(relative,
                             [](const std::filesystem::path& name) { return name.native().starts_with('.'); });
}

Result<Hashes> hashes_of(const RegisteredModel& model) {
  if (!model.step) return hashes_of_folder(model.path);
  return hashes_of_checkpoint(TRY(find_checkpoints(argument_of(model))), *model.step, model.path);
}

// Nothing: they are equal.
std::optional<ArtifactState> difference(const Hashes& then, const Hashes& now) {
  for (const auto& [file, hash] : then) {
    const auto found = now.find(file);
    if (found == now.end()) return ArtifactState{Kind::gone, fmt::format("'{}' is gone", file)};
    if (found->second != hash)
      return ArtifactState{Kind::changed,
                           fmt::format("'{}' has SHA-256 {:.12}, not {:.12}", file, found->second, hash)};
  }
  for (const auto& [file, hash] : now)
    if (!then.contains(file)) return ArtifactState{Kind::changed, fmt::format("'{}' is new", file)};
  return std::nullopt;
}

// A key that is not there says nothing of the checkpoint. Errors: as checkpoint::read_keys.
Status check_keys(const RegisteredModel& model) {
  if (!model.step) return {};
  const Result<RunPlace> run = open_run(model.path);
  if (!run.ok()) return {};
  const Result<Workload> workload = workload_of(*run);
  if (workload.ok()) TRY(keys_of(workload->checkpoint));
  return {};
}

Result<ArtifactState> state_by(const Error& unreadable) {
  if (checkpoint::is_refused(unreadable)) return unreadable;
  if (unreadable.kind == ErrorKind::not_found) return ArtifactState{Kind::gone, unreadable.message};
  if (unreadable.kind == ErrorKind::corrupt) return ArtifactState{Kind::changed, unreadable.message};
  return unreadable;
}

}  // namespace

std::string argument_of(const RegisteredModel& model) {
  return model.step ? fmt::format("{}@{}", model.path, *model.step) : model.path;
}

Result<Hashes> hashes_of_checkpoint(const CheckpointPlace& place, std::int64_t step, const std::string& run) {
  std::string text;
  TRY(checkpoint::read_manifest(place.folder, step, &text));
  Hashes hashes{{std::filesystem::path(place.folder.manifest(step)).filename().string(), sha256_of(text)}};
  const std::string tokenizer = run + "/" + RunFiles::tokenizer;
  if (path_exists(tokenizer)) hashes[RunFiles::tokenizer] = TRY(sha256_of_file(tokenizer));
  return hashes;
}

Result<Hashes> hashes_of_folder(const std::string& path) {
  if (!path_exists(path)) return error(ErrorKind::not_found, "there is no '{}'", path);
  const std::filesystem::path folder(path);
  Hashes hashes;
  if (!is_folder(folder)) {
    hashes[folder.filename().string()] = TRY(sha256_of_file(path));
    return hashes;
  }
  for (const std::filesystem::path& file : TRY(files_below(folder))) {
    const std::filesystem::path relative = file.lexically_relative(folder);
    if (!is_hidden(relative)) hashes[relative.string()] = TRY(sha256_of_file(file.string()));
  }
  return hashes;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::intact: return "intact";
    case Kind::changed: return "changed";
    case Kind::gone: return "gone";
  }
  return "";
}

Result<ArtifactState> artifact_state(const RegisteredModel& model, checkpoint::Verify verify) {
  const Result<Hashes> now = hashes_of(model);
  if (!now.ok()) {
    TRY(check_keys(model));
    return state_by(now.error());
  }
  if (std::optional<ArtifactState> other = difference(model.sha256, *now)) return *std::move(other);
  if (!model.step || verify != checkpoint::Verify::contents) return ArtifactState{};
  const Result<checkpoint::Checkpoint> whole = open_checkpoint(TRY(find_checkpoints(argument_of(model))));
  if (!whole.ok()) return state_by(whole.error());
  return ArtifactState{};
}

Status check_artifact(const RegisteredModel& model, checkpoint::Verify verify) {
  const ArtifactState state = TRY(artifact_state(model, verify));
  if (state.kind == Kind::intact) return {};
  return error(state.kind == Kind::gone ? ErrorKind::not_found : ErrorKind::corrupt,
               "{} is not what was registered: {} ({})", model.id(), model.source(), state.why)
      .hinted(fmt::format("put it back, or use another version: systole models list {}", model.name));
}

}  // namespace systole
