#include "operate/run/origin.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "execute/data/dataset_change.h"
#include "execute/train/trainer.h"
#include "execute/train/training_job.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/base/shell_quoted.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/job_lock.h"
#include "operate/run/plan_run.h"
#include "operate/run/run_numerics.h"
#include "operate/run/train_run.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "resume.from";
constexpr std::string_view kLatest = "latest", kBlessed = "blessed";

// resume.from, parsed.
struct Asked {
  std::string place;  // a run or a checkpoint folder; empty: the newest run that has one
  std::optional<std::int64_t> step;
  bool blessed = false;
};

Result<Asked> read_asked(const std::string& text) {
  if (text == kLatest) return Asked{};
  if (text == kBlessed) return Asked{.blessed = true};
  auto [place, step] = parse_checkpoint_reference(text);
  Asked asked{.place = std::move(place)};
  if (!step) return asked;
  const std::string& which = *step;
  if (which == kLatest) return asked;
  asked.blessed = which == kBlessed;
  if (asked.blessed) return asked;
  asked.step = number_from(which);
  if (asked.step.value_or(-1) < 0) {
    return error(ErrorKind::invalid, "'{}' names no step after the @", text)
        .hinted(fmt::format("as in {0}@500; {0}@latest and {0}@blessed do as well",
                            asked.place.empty() ? "quickstart-1" : asked.place));
  }
  return asked;
}

std::string runs_of(const Workload& workload) { return workload.folder.empty() ? kRunsFolder : workload.folder; }

Result<bool> holds_run(const std::string& folder) {
  const Result<std::unique_ptr<Store>> store = open_posix_store(folder);
  return store.ok() && TRY(is_run(**store, ""));
}

// A folder of this machine as an absolute path, another store's as its URI.
Result<std::string> absolute_place(const std::string& place) {
  const Result<StoreUri> uri = read_store_uri(place);
  if (!uri.ok() || !uri->is_local()) return place;
  return absolute_path(uri->path);
}

// The run whose folder contains this checkpoint folder; empty: none.
std::string run_around(const std::string& folder) {
  const Result<StoreUri> uri = read_store_uri(folder);
  if (!uri.ok() || !uri->is_local()) return "";
  const Result<std::string> path = absolute_path(uri->path);
  if (!path.ok()) return "";
  const std::string parent = fs::path(*path).parent_path().string();
  const Result<bool> is_one = holds_run(parent);
  if (!is_one.ok() || !*is_one) return "";
  Result<std::unique_ptr<Store>> store = open_posix_store(parent);
  if (!store.ok()) return "";
  const RunPlace run{parent, std::move(*store)};
  const Result<Workload> workload = workload_of(run);
  if (!workload.ok()) return "";
  const Result<CheckpointHome> home = checkpoint_home(parent, workload->checkpoint, Absent::is_an_error);
  return home.ok() && home->path == *path ? parent : "";
}

Result<Origin> choose(CheckpointPlace place, std::string run, const Asked& asked) {
  const auto found = [&]() -> Result<checkpoint::Restored> {
    if (!asked.step && !asked.blessed) return checkpoint::open_newest(place.folder, checkpoint::Verify::lengths);
    std::int64_t step = asked.step.value_or(0);
    if (asked.blessed) {
      const std::vector<std::int64_t> steps = TRY(checkpoint::list_blessed(place.folder));
      if (steps.empty()) {
        return error(ErrorKind::not_found, "no checkpoint in '{}' is blessed", place.path)
            .hinted(fmt::format("systole ckpt bless {}@STEP marks one; `systole ckpt list` lists what there is",
                                shell_word(run.empty() ? place.path : run)));
      }
      step = steps.back();
    }
    return checkpoint::Restored{TRY(checkpoint::open_step(place.folder, step, checkpoint::Verify::lengths)), {}};
  };
  Result<checkpoint::Restored> restored = found();
  if (!restored.ok()) return told_in(place, std::move(restored).error());
  const std::int64_t step = restored->checkpoint.manifest().step;
  place.step = step;
  std::string name = fmt::format("{}@{}", TRY(absolute_place(run.empty() ? place.path : run)), step);
  return Origin{std::move(place), std::move(run), std::move(name), std::move(restored->checkpoint),
                std::move(restored->rejected)};
}

// The origin's own keys decide how it is read; if only the asking workload's key is trusted, it is trusted here too.
Result<CheckpointPlace> place_in(const RunPlace& run, const Workload& asking) {
  const Workload its = TRY(trained_workload_of(run));
  checkpoint::KeyRefs keys = key_refs_of(its.checkpoint);
  if (!asking.checkpoint.trusted_key.empty()) keys.trusted = asking.checkpoint.trusted_key;
  return checkpoints_of(run.path, its.checkpoint, keys);
}

// Whether a run has the requested checkpoint, judged by file names. A run without a workload ended before it began.
Result<bool> has_asked(const std::string& folder, const Asked& asked) {
  std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const RunPlace run{folder, std::move(store)};
  if (!TRY(run.store->exists(RunFiles::workload))) return false;
  const Workload its = TRY(workload_of(run));
  if (!its.has_model()) return false;
  const CheckpointHome home = TRY(checkpoint_home(folder, its.checkpoint, Absent::is_an_error));
  const std::vector<std::int64_t> steps =
      TRY(asked.blessed ? checkpoint::list_blessed(home.folder) : checkpoint::list_steps(home.folder));
  return asked.step ? std::ranges::find(steps, *asked.step) != steps.end() : !steps.empty();
}

// Folders of runs, newest first. Errors: io, also for one unreadable run.
Result<std::vector<std::string>> newest_first(const std::string& runs) {
  const Result<std::unique_ptr<Store>> store = open_posix_store(runs);
  if (!store.ok() && store.error().kind == ErrorKind::io) return store.error();
  if (!store.ok()) return std::vector<std::string>();
  std::vector<Error> refused;
  const std::vector<std::string> names = TRY(list_runs(**store, &refused));
  if (!refused.empty()) return together(std::move(refused));
  std::vector<std::pair<std::string, std::string>> all;  // time opened, folder
  for (const std::string& name : names) all.emplace_back(TRY(opened_at(**store, name)), runs + "/" + name);
  std::ranges::sort(all, std::greater<>());
  std::vector<std::string> folders;
  for (auto& [opened, folder] : all) folders.push_back(std::move(folder));
  return folders;
}

// The newest run that has the requested checkpoint; empty: none.
Result<std::string> newest_with(const std::string& runs, const Asked& asked) {
  for (const std::string& folder : TRY(newest_first(runs)))
    if (TRY(has_asked(folder, asked))) return folder;
  return std::string();
}

// An unreadable run may be the one that is meant: skipping it could begin training from another one. So it is an error.
Result<std::string> choose_run(const std::string& runs, const Asked& asked) {
  Result<std::string> newest = newest_with(runs, asked);
  if (!newest.ok()) {
    Error unread = std::move(newest).error();
    unread.hint += unread.hint.empty() ? "" : "; or ";
    unread.hint += "name the run that is wanted: --set resume.from=NAME";
    return unread;
  }
  if (!newest->empty()) return newest;
  return error(ErrorKind::not_found, "no run in '{}' has a {}checkpoint", runs, asked.blessed ? "blessed " : "")
      .hinted(asked.blessed ? "systole ckpt bless RUN@STEP marks one" : "resume.from: the folder of a run");
}

Result<Origin> look_for(const Workload& workload) {
  const Asked asked = TRY(read_asked(workload.resume.from));
  std::string run = asked.place.empty() ? TRY(choose_run(runs_of(workload), asked)) : asked.place;
  if (!TRY(holds_run(run))) {
    if (std::optional<CheckpointPlace> folder = TRY(checkpoints_in(run, {}))) {
      run = run_around(run);
      if (run.empty()) {
        folder->folder.keys = TRY(keys_of(workload.checkpoint));
        return choose(std::move(*folder), "", asked);
      }
    } else {
      run = TRY(find_run(runs_of(workload), run));
    }
  }
  std::unique_ptr<Store> store = TRY(open_posix_store(run));
  CheckpointPlace place = TRY(place_in({run, std::move(store)}, workload));
  return choose(std::move(place), std::move(run), asked);
}

// An error of another file, reported at the key.
Error at_key(Error error, const WorkloadSource& source) {
  const std::string file = to_string(error.where);
  error.message = fmt::format("{}: {}{}", kKey, file.empty() ? "" : file + ": ", error.message);
  error.where = {};
  if (error.hint.empty()) error.hint = "'systole runs' lists the runs, `systole ckpt list RUN` the checkpoints of one";
  return source.placed(std::move(error), kKey);
}

// The keys that decide numbers and differ from the origin's run. A key that only one of the two has, and the document
// does not give, follows from another key that differs: it is reported only if nothing else is.
std::vector<Error> other_keys(const Workload& workload, const Origin& origin, const WorkloadSource& source) {
  std::vector<Error> errors, of_others;
  if (origin.run.empty()) return errors;
  Result<std::unique_ptr<Store>> store = open_posix_store(origin.run);
  if (!store.ok()) return errors;
  const Result<Workload> its = workload_of({origin.run, std::move(*store)});
  if (!its.ok()) return errors;
  const std::map<std::string, std::string> here = leaves_of(to_node(numbers_of(workload))),
                                           there = leaves_of(to_node(numbers_of(*its)));
  std::map<std::string, std::string> keys = here;
  keys.insert(there.begin(), there.end());
  if (std::string_view(workload.model.family_name()) != its->model.family_name())
    keys = {{"model.family", ""}};  // everything else then differs too
  for (const auto& [key, any] : keys) {
    const auto mine = here.find(key), theirs = there.find(key);
    const bool is_here = mine != here.end(), is_there = theirs != there.end();
    if (is_here && is_there && mine->second == theirs->second) continue;
    std::vector<Error>& list = (is_here && is_there) || source.places.contains(key) ? errors : of_others;
    list.push_back(source.placed(
        error(ErrorKind::invalid, "{} is {}, and '{}', from which the run is to begin (resume.from), has {}", key,
              is_here ? mine->second : "not said", origin.run, is_there ? theirs->second : "none")
            .hinted(is_there ? fmt::format("{}: {}, or take resume.from out to begin anew", key, theirs->second)
                             : fmt::format("take {} out, or resume.from", key)),
        key));
  }
  return errors.empty() ? of_others : errors;
}

Error other_run(const Origin& origin, const char* differs, const WorkloadSource& source) {
  return source.placed(
      key_error(ErrorKind::invalid, "resume.from", "the checkpoint '{}' is of a run with {}", origin.name, differs)
          .hinted("the workload that it was made with, or take resume.from out to begin anew"),
      kKey);
}

// Checks that training steps are left.
Status goes_further(const Workload& workload, const Origin& origin, const WorkloadSource& source) {
  const TrainState state = TRY(state_from(origin.checkpoint.manifest().extra));
  const TrainSpec& train = workload.train;
  const auto nothing_left = [&](const char* key, const std::string& done, const std::string& asked, std::string hint) {
    return source.placed(
        key_error(ErrorKind::invalid, key, "{} are done in '{}' (resume.from), and {} is all that is asked", done,
                  origin.name, asked)
            .hinted(std::move(hint)),
        key);
  };
  if (train.steps && state.step >= *train.steps)
    return nothing_left("train.steps", counted(state.step, "step"), std::to_string(*train.steps),
                        fmt::format("train.steps: {}, which counts those", 2 * state.step));
  if (train.tokens && state.tokens >= *train.tokens)
    return nothing_left("train.tokens", counted(state.tokens, "token"), std::to_string(*train.tokens),
                        fmt::format("train.tokens: {}, which counts those", 2 * state.tokens));
  if (train.time && state.trained >= *train.time)
    return nothing_left("train.time", to_string(state.trained), to_string(*train.time),
                        fmt::format("train.time: {:.0f}s, which counts those", 2 * state.trained.count() + 1));
  return {};
}

// Where the data differs from dataset `then`; empty `then`: there was none.
std::optional<DatasetChange> other_data(const std::string& then, const Data& data) {
  if (then.empty() || !data.dataset) return std::nullopt;
  const TokensManifest& now = data.dataset->manifest;
  const auto other = other_inputs(*data.folder, then, {now.inputs, now.key, now.sources});
  return other ? other : other_tokens(*data.folder, then, now);
}

}  // namespace

Result<Origin> find_origin(const Workload& workload, const WorkloadSource& source) {
  Result<Origin> found = look_for(workload);
  if (!found.ok()) return at_key(std::move(found).error(), source);
  return found;
}

Status fits_origin(const Workload& workload, const Origin& origin, const WorkloadSource& source) {
  const checkpoint::Manifest& manifest = origin.checkpoint.manifest();
  if (manifest.identity.workload_hash != numbers_hash(workload)) {
    std::vector<Error> errors = other_keys(workload, origin, source);
    if (errors.empty()) return other_run(origin, "other numbers (model, data or train)", source);
    return together(std::move(errors));
  }
  return goes_further(workload, origin, source);
}

Status fits_origin(PlannedRun& p, const WorkloadSource& source) {
  const Origin& origin = *p.origin;
  const checkpoint::Manifest& manifest = origin.checkpoint.manifest();
  if (manifest.identity.model_hash != parameters_hash(*p.job.model))
    return other_run(origin, "another model: names, shapes or types of its tensors differ", source);
  if (Status alike = computes_alike(manifest, p); !alike.ok())
    return source.placed(std::move(alike).error(), "train.exact");
  if (origin.run.empty()) return {};
  const RecordedInputs begun = TRY(recorded_inputs(origin.run));
  if (const std::optional<DatasetChange> other = other_data(begun.dataset, p.data)) {
    return source.placed(error(ErrorKind::invalid, "{}", other->told(fmt::format("'{}' was trained on", origin.run)))
                             .hinted("put it back as it was, or take resume.from out to begin anew"),
                         "data.train.files");
  }
  if (!begun.weights.empty() && p.weights) {
    if (const std::string now = TRY(p.weights->hash()); now != begun.weights) {
      return source.placed(
          error(ErrorKind::invalid, "the weights in '{}' are others than '{}' began from (hash {} then, {} now)",
                p.weights->path, origin.run, begun.weights, now)
              .hinted("put the folder back as it was, or take resume.from out to begin anew"),
          "model.weights");
    }
  }
  return {};
}

Status keeps_origin(const Workload& asked, const std::string& kept, const std::string& run,
                    const WorkloadSource& source) {
  const std::string& from = asked.resume.from;
  if (from == kept) return {};
  const Result<Asked> words = read_asked(from);
  if (!kept.empty() && !from.empty() && words.ok()) {
    const Asked was = TRY(read_asked(kept));
    if (words->place.empty()) return {};
    bool same_place = false;
    for (const std::string& place : {words->place, runs_of(asked) + "/" + words->place, run_around(words->place)})
      same_place = same_place || (!place.empty() && TRY(absolute_place(place)) == was.place);
    if (const auto found = find_run(runs_of(asked), words->place); found.ok())
      same_place = same_place || TRY(absolute_path(*found)) == was.place;
    if (same_place && (!words->step || words->step == was.step)) return {};
  }
  return source.placed(
      error(ErrorKind::invalid, "resume.from is {}, and the run '{}' began {}", from.empty() ? "not said" : from, run,
            kept.empty() ? "without it" : fmt::format("from '{}'", kept))
          .hinted(kept.empty() ? "take it out, or begin a new run: another --folder"
                               : fmt::format("resume.from: {}, or begin a new run: another --folder", kept)),
      kKey);
}

std::string hash_of(const Origin& origin) {
  checkpoint::Manifest manifest = origin.checkpoint.manifest();
  manifest.date.clear();
  return to_hex(hash128(checkpoint::to_text(manifest)));
}

}  // namespace systole
