#include "operate/cli/run_places.h"

#include <charconv>

#include "operate/cli/command.h"
#include "operate/observe/run_files.h"

namespace systole::cli {

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

Result<Workload> workload_of(const RunPlace& run) {
  return read_workload(TRY(read_text(*run.store, RunFiles::workload)), run.path + "/" + RunFiles::workload);
}

Result<Workload> trained_workload_of(const RunPlace& run) {
  Workload workload = TRY(workload_of(run));
  if (workload.has_model()) return workload;
  return error(ErrorKind::invalid,
               "'{}' is of a program of your own (command): its model and checkpoints are not known here", run.path)
      .hinted(fmt::format("name a run of a model: 'systole runs' lists those there are; {}/logs has what it printed",
                          run.path));
}

checkpoint::KeyRefs key_refs_of(const CheckpointSpec& spec) {
  return {spec.encryption_key, spec.signing_key, spec.trusted_key};
}

Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec) {
  return checkpoint::read_keys(key_refs_of(spec));
}

Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec, const CheckpointHome& home) {
  const bool saved = !TRY(checkpoint::list_steps({home.store, home.dir})).empty();
  return checkpoint::read_keys(key_refs_of(spec),
                               saved ? checkpoint::KeysFor::what_is_there : checkpoint::KeysFor::a_new_run);
}

Result<std::optional<CheckpointPlace>> checkpoints_in(const std::string& folder, const checkpoint::KeyRefs& keys) {
  if (folder.empty()) return std::optional<CheckpointPlace>();
  Result<std::unique_ptr<Store>> store = open_posix_store(folder);
  if (!store.ok() && store.error().kind == ErrorKind::io) return std::move(store).error();
  if (!store.ok() || !TRY((*store)->exists("manifests"))) return std::optional<CheckpointPlace>();
  CheckpointPlace place;
  place.path = place.root = folder;
  place.store = std::move(*store);
  place.folder = {place.store.get(), "", TRY(checkpoint::read_keys(keys))};
  return std::optional(std::move(place));
}

Result<CheckpointPlace> checkpoints_of(RunPlace run, const CheckpointSpec& spec, const checkpoint::KeyRefs& keys) {
  CheckpointHome home = TRY(checkpoint_home(*run.store, run.path, spec, Absent::is_an_error));
  CheckpointPlace place;
  place.path = home.path();
  place.root = home.root;
  place.store = home.outside() ? std::move(home.own) : std::move(run.store);
  place.folder = {place.store.get(), home.dir, TRY(checkpoint::read_keys(keys))};
  return place;
}

AskedCheckpoint read_asked_checkpoint(const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at == text.npos || text.find('/', at) != text.npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<CheckpointPlace> find_checkpoints(const std::string& asked, const checkpoint::KeyRefs& given) {
  std::optional<std::int64_t> wanted;
  const auto [name, step] = read_asked_checkpoint(asked);
  if (step) {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(step->data(), step->data() + step->size(), number);
    if (failed != std::errc() || end != step->data() + step->size() || number < 0) {
      return error(ErrorKind::invalid, "'{}' names no step after the @", asked).hinted("as in quickstart-1@500");
    }
    wanted = number;
  }
  if (std::optional<CheckpointPlace> folder = TRY(checkpoints_in(name, given))) {
    folder->step = wanted;
    return std::move(*folder);
  }
  RunPlace run = TRY(open_run(name));
  const CheckpointSpec spec = TRY(trained_workload_of(run)).checkpoint;
  const bool none = given.encryption.empty() && given.signing.empty() && given.trusted.empty();
  CheckpointPlace of_run = TRY(checkpoints_of(std::move(run), spec, none ? key_refs_of(spec) : given));
  of_run.step = wanted;
  return of_run;
}

Error below(const std::string& root, Error error) {
  if (!error.where.file.empty()) error.where.file = root + "/" + error.where.file;
  for (Error& other : error.others) other = below(root, std::move(other));
  return error;
}

Error told_in(const CheckpointPlace& place, Error error) {
  if (error.hint.empty() && error.kind == ErrorKind::not_found)
    error.hint = "a run saves every checkpoint.every and at its end; `systole ckpt list` lists what there is";
  if (error.hint.empty() && error.kind == ErrorKind::corrupt)
    error.hint = "`systole ckpt verify` says what is damaged; copy it back, or name another step";
  return below(place.root, std::move(error));
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

}  // namespace systole::cli
