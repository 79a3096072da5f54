#include "operate/run/checkpoint_follower.h"

#include <algorithm>
#include <chrono>

#include "execute/train/state.h"
#include "execute/train/training_job.h"
#include "ground/base/errors.h"
#include "ground/base/hash.h"

namespace systole {

using checkpoint::Verify;

namespace {

RankedWeights ranked(const checkpoint::Checkpoint& from) {
  std::string chunks;  // named by their contents
  for (const checkpoint::ChunkFile& chunk : from.manifest().chunks) chunks += fmt::format("{}\n", chunk.hash);
  return {from.manifest().step, hash64(chunks)};
}

}  // namespace

Status load_checkpoint(Engine& engine, const ServedModel& model, const checkpoint::Checkpoint& from) {
  return load_engine(engine, model, [&](Executor& executor) { return load_parameters(executor, from, model.part); });
}

Status load_checkpoint_on_ranks(Engine& engine, const ServedModel& model, const checkpoint::Checkpoint& from) {
  const auto own = [&] { return load_checkpoint(engine, model, from); };
  return engine.leads() == nullptr ? own() : engine.leads()->load(ranked(from), own);
}

Status load_ranked(Engine& engine, const ServedModel& model, const RankedWeights& weights) {
  const auto from = TRY(checkpoint::open_step(model.checkpoints->folder, weights.step, Verify::lengths));
  if (ranked(from).hash == weights.hash) return load_checkpoint(engine, model, from);
  return error(ErrorKind::invalid, "its checkpoint of step {} is another than rank 0's", weights.step);
}

class CheckpointFollower::Source {
 public:
  Source(const ServedModel& model, FollowOptions options) : model_(model), options_(std::move(options)) {}

  const CheckpointPlace& place() const { return *model_.checkpoints; }
  const ServedModel& model() const { return model_; }
  const FollowOptions& options() const { return options_; }

  // Those that are followed, newest first.
  Result<std::vector<std::int64_t>> steps() const {
    std::vector<std::int64_t> steps = TRY(options_.which == Followed::blessed ? checkpoint::list_blessed(place().folder)
                                                                              : checkpoint::list_steps(place().folder));
    std::ranges::sort(steps, std::ranges::greater());
    return steps;
  }

  Error of_step(std::int64_t step, const Error& reason) const {
    return passed_over({step, place().folder.manifest(step), reason}, place().root, model_.name);
  }

  // As WeightsReload::load, of a step that was verified.
  Result<std::int64_t> load(Engine& engine, std::int64_t wanted, std::int64_t served) const {
    const auto opened = checkpoint::open_step(place().folder, wanted, Verify::lengths);
    if (!opened.ok()) {
      options_.warning(of_step(wanted, opened.error()));
      return served;
    }
    const Status loaded = load_checkpoint_on_ranks(engine, model_, *opened);
    if (loaded.ok()) {
      options_.served(wanted);
      return wanted;
    }
    options_.warning(of_step(wanted, loaded.error()));
    const std::int64_t instead = TRY(load_another(engine, wanted, served, loaded.error()));
    if (instead != served) options_.served(instead);
    return instead;
  }

 private:
  // The engine's parameters are undefined.
  Result<std::int64_t> load_another(Engine& engine, std::int64_t failed, std::int64_t served, Error why) const {
    std::vector<std::int64_t> others{served};
    if (const auto followed = steps(); followed.ok()) {
      std::ranges::copy_if(*followed, std::back_inserter(others),
                           [&](std::int64_t step) { return step != failed && step != served; });
    }
    for (const std::int64_t step : others) {
      const auto opened = checkpoint::open_step(place().folder, step, Verify::contents);
      const Status loaded = opened.ok() ? load_checkpoint_on_ranks(engine, model_, *opened) : Status(opened.error());
      if (loaded.ok()) return step;
      why.others.push_back(loaded.error());
    }
    return why;
  }

  const ServedModel& model_;
  const FollowOptions options_;
};

CheckpointFollower::CheckpointFollower(const ServedModel& model, ServingThread& serving, FollowOptions options)
    : source_(std::make_shared<const Source>(model, std::move(options))), serving_(serving) {
  CHECK(model.checkpoints, "'{}' is no run", model.name);
}

CheckpointFollower::~CheckpointFollower() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CheckpointFollower::start(Seconds every) {
  thread_ = std::thread([this, every] { run(every); });
}

void CheckpointFollower::look_now() {
  const std::lock_guard lock(mutex_);
  now_ = true;
  changed_.notify_all();
}

void CheckpointFollower::run(Seconds every) {
  constexpr double kMost = 1e7;  // far more would not fit the clock
  const std::chrono::duration<double> period(std::min(every.count(), kMost));
  while (true) {
    bool again = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, period, [&] { return ends_ || now_; });
      if (ends_) return;
      again = std::exchange(now_, false);
    }
    look(again);
  }
}

void CheckpointFollower::look(bool again) {
  if (again) {
    asked_.reset();
    damaged_.clear();
    told_.clear();
  }
  try {
    if (const Status looked = find_newer(); !looked.ok()) tell(below(source_->place().root, looked.error()));
  } catch (const Failure& failure) { tell(failure.error()); } catch (const std::exception& thrown) {
    tell(error(ErrorKind::internal, "{}", thrown.what()));
  }
}

Status CheckpointFollower::find_newer() {
  const std::int64_t served = *serving_.counts().step;
  for (const std::int64_t step : TRY(source_->steps())) {
    // What was handed over waits for sequences to end, or could not be loaded.
    if (step <= served || step == asked_) return {};
    if (damaged_.contains(step)) continue;
    const Status whole = verify(step);
    if (ends_) return {};
    if (!whole.ok()) {
      refuse(step, whole.error());
      continue;
    }
    asked_ = step;
    serving_.reload({step, [source = source_, step](Engine& engine, std::int64_t before) {
                       return source->load(engine, step, before);
                     }});
    return {};
  }
  return {};
}

// Every byte, on this thread alone: serving needs the cores.
Status CheckpointFollower::verify(std::int64_t step) const {
  const checkpoint::Folder& folder = source_->place().folder;
  const checkpoint::Manifest manifest = TRY(checkpoint::load_manifest(folder, step));
  if (manifest.identity.model_hash != parameters_hash(*source_->model().model)) {
    return error(ErrorKind::invalid, "it is of another model ({})", manifest.identity.model)
        .hinted("'systole ckpt show' lists its tensors; serve it by a server of its own");
  }
  for (const checkpoint::ChunkFile& chunk : manifest.chunks) {
    if (ends_) return {};
    TRY(checkpoint::verify_chunk(folder, chunk, Verify::contents));
  }
  return {};
}

void CheckpointFollower::refuse(std::int64_t step, const Error& reason) {
  // The run that writes checkpoints removes old ones, which is no damage.
  const auto there = checkpoint::list_steps(source_->place().folder);
  if (there.ok() && std::ranges::find(*there, step) == there->end()) return;
  // One that cannot be read for now may be whole: it is tried again.
  if (!checkpoint::is_refused(reason)) damaged_.insert(step);
  const std::size_t before = told_.size();
  tell(source_->of_step(step, reason));
  if (told_.size() > before) serving_.note_failed_reload();
}

void CheckpointFollower::tell(const Error& error) {
  if (told_.insert(error.message).second) source_->options().warning(error);
}

}  // namespace systole
