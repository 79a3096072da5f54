#include "operate/run/run_mixture.h"

#include <unistd.h>

#include <limits>

#include "ground/base/clock.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "operate/run/data_parts.h"
#include "operate/run/job_lock.h"

namespace systole {
namespace {

static_assert(static_cast<int>(MixtureSpec::By::bytes) == static_cast<int>(MixtureUnit::bytes) &&
              static_cast<int>(MixtureSpec::Exhausted::rescale) == static_cast<int>(Exhausted::rescale));
constexpr const char* kSources = "data.mixture.sources";

MixtureOptions mixture_options(const Workload& workload) {
  const MixtureSpec& spec = workload.data.mixture;
  MixtureOptions options{.by = static_cast<MixtureUnit>(spec.by),
                         .temperature = spec.temperature,
                         .exhausted = static_cast<Exhausted>(spec.exhausted),
                         .seed = static_cast<std::uint64_t>(workload.data.seed)};
  for (const MixtureSpec::Source& source : spec.sources)
    options.sources.push_back({source.name, source.weight, source.epochs});
  for (const MixtureSpec::Phase& phase : spec.schedule) {
    const std::int64_t step = steps_of(phase.from, workload.train.steps.value_or(0));
    options.schedule.push_back({rows_of_steps(workload, step), phase.weights});
  }
  return options;
}

Error of_source(Error error, const std::string& name) {
  error.message = fmt::format("the source '{}': {}", name, error.message);
  return error;
}

// The text of a mixture that a run began with: kept beside the datasets, to say later what differs.
std::string description_of(const std::string& key) { return fmt::format("mixture-{}.txt", key); }

class Preparation {
 public:
  Preparation(const Workload& workload, BucketFiles& files, Store& folder, const WorkloadSource& source,
              const DataRequest& request)
      : workload_(workload),
        files_(files),
        folder_(folder),
        source_(source),
        request_(request),
        options_(mixture_options(workload)) {}

  Result<MixtureInputs> inputs() {
    const std::string run = request_.begun.empty() ? "" : request_.run;
    std::vector<Error> errors;
    const std::vector<Workload> workloads = workloads_of_sources(workload_);
    for (std::size_t s = 0; s < workloads.size(); ++s) {
      Result<BuildOptions> build = build_options(workloads[s], files_, source_, run, options_.sources[s].name);
      if (!build.ok()) {
        errors.push_back(std::move(build).error());
        continue;
      }
      build->may_hold_none_out = true;
      build->progress = request_.progress;
      builds_.push_back(*std::move(build));
    }
    if (!errors.empty()) return together(std::move(errors));
    for (BuildOptions& build : builds_) {
      build.tokenizer_model = builds_[0].tokenizer_model;
      texts_.push_back(TRY(dataset_inputs(build)));
    }
    return mixture_inputs(options_, texts_);
  }

  Result<JoinedDatasets> prepare() {
    const MixtureInputs mixture = TRY(inputs());
    TRY(as_begun(mixture));
    TRY(tokenizer());
    std::vector<Dataset> datasets;
    for (std::size_t s = 0; s < builds_.size(); ++s) {
      Result<Dataset> built = dataset(s);
      if (!built.ok()) return of_source(std::move(built).error(), options_.sources[s].name);
      datasets.push_back(*std::move(built));
    }
    TRY(describe(mixture));
    return join_datasets(std::move(datasets), options_, mixture, workload_.data.held_out_fraction > 0);
  }

 private:
  Status as_begun(const MixtureInputs& now) {
    if (request_.begun.empty() || request_.begun == now.key) return {};
    const Result<std::string> then = read_text(folder_, description_of(request_.begun));
    std::string differs = then.ok() ? other_mixture(*then, now.text) : "";
    if (!differs.empty()) differs = ": " + differs;
    return error(ErrorKind::invalid, "the mixture is another than the run was begun with ({} then, {} now){}",
                 request_.begun, now.key, differs)
        .hinted(begin_anew("it", request_.run));
  }

  Status not_built(const char* what) const {
    return error(ErrorKind::not_found, "the {} of this mixture is not built in '{}'", what, workload_.data.folder)
        .hinted("systole data build WORKLOAD");
  }

  // The tokenizer in common, out of a file or trained once, becomes that of each source.
  Status tokenizer() {
    if (builds_[0].tokenizer_model) return {};
    const std::string path = fmt::format("tokenizer-{}.model", tokenizer_key(options_, texts_));
    if (!TRY(folder_.exists(path))) {
      if (request_.only_open) return not_built("tokenizer");
      const Seconds began = real_clock()->now(), fetched = files_.spent.fetch;
      const std::unique_ptr<FileLock> lock = TRY(lock_in_turn(workload_.data.folder, request_));
      if (!TRY(folder_.exists(path))) TRY(train(path));
      files_.spent.build += real_clock()->now() - began - (files_.spent.fetch - fetched);
    }
    const std::string model = TRY(read_text(folder_, path));
    for (std::size_t s = 0; s < builds_.size(); ++s) {
      builds_[s].tokenizer_model = model;
      texts_[s] = with_tokenizer(std::move(texts_[s]), model);
    }
    return {};
  }

  Status train(const std::string& path) {
    const auto train_here = [&]() -> Status {
      const Tokenizer trained = TRY(train_on_sources(builds_, options_));
      return write_whole(folder_, path, trained.model());
    };
    if (!request_.apart) return train_here();
    // In a child, as datasets are built; if it fails, this process finds the error.
    TRY(files_.bring());  // before the fork: its child would share the connections
    if (!ended_child(request_.progress)) {
      int code = 1;
      try {
        code = train_here().ok() ? 0 : 1;
      } catch (...) {}
      _exit(code);
    }
    return TRY(folder_.exists(path)) ? Status() : train_here();
  }

  Result<Dataset> dataset(std::size_t s) {
    BuildOptions& build = builds_[s];
    if (request_.only_open) return open_dataset(folder_, texts_[s].key, build.sequence_length, build.policy);
    return open_or_build(folder_, workload_.data.folder, texts_[s].key, build, request_);
  }

  Status describe(const MixtureInputs& mixture) {
    const std::string path = description_of(mixture.key);
    if (request_.only_open || TRY(folder_.exists(path))) return {};
    const std::unique_ptr<FileLock> lock = TRY(lock_in_turn(workload_.data.folder, request_));
    return write_whole(folder_, path, mixture.text);
  }

  const Workload& workload_;
  BucketFiles& files_;
  Store& folder_;
  const WorkloadSource& source_;
  const DataRequest& request_;
  const MixtureOptions options_;
  std::vector<BuildOptions> builds_;  // of the sources
  std::vector<DatasetInputs> texts_;  // of the sources
};

}  // namespace

std::vector<Workload> workloads_of_sources(const Workload& workload) {
  std::vector<Workload> workloads;
  for (const MixtureSpec::Source& source : workload.data.mixture.sources) {
    Workload one = workload;
    one.data.train = source.text;
    if (!workloads.empty()) one.data.tokenizer.file.clear();  // in common: checked and read with the first
    workloads.push_back(std::move(one));
  }
  return workloads;
}

Result<JoinedDatasets> prepare_mixture(const Workload& workload, BucketFiles& files, Store& folder,
                                       const WorkloadSource& source, const DataRequest& request) {
  Result<JoinedDatasets> prepared = Preparation(workload, files, folder, source, request).prepare();
  if (!prepared.ok() && prepared.error().kind == ErrorKind::invalid) return source.placed(prepared.error(), kSources);
  return prepared;
}

Result<MixtureInputs> mixture_inputs_of(const Workload& workload, BucketFiles& files, const WorkloadSource& source) {
  const DataRequest nothing;
  return Preparation(workload, files, files, source, nothing).inputs();
}

std::int64_t rows_of_steps(const Workload& workload, std::int64_t steps) {
  return steps <= std::numeric_limits<std::int64_t>::max() / workload.train.batch
             ? steps * workload.train.batch
             : std::numeric_limits<std::int64_t>::max();
}

std::optional<std::int64_t> rows_of_run(const Workload& workload) {
  if (!workload.train.steps) return std::nullopt;
  return rows_of_steps(workload, *workload.train.steps);
}

Status check_mixture_lasts(const Workload& workload, const Data& data, const WorkloadSource& source) {
  const std::optional<std::int64_t> rows = rows_of_run(workload);
  if (!data.mixture || !data.mixture->order->end() || (rows && *rows <= *data.mixture->order->end())) return {};
  const MixtureOrder& order = *data.mixture->order;
  const MixtureSource& last = order.sources()[order.ended_by()];
  const std::int64_t steps = *order.end() / workload.train.batch;
  const bool stops = data.mixture->options.exhausted == Exhausted::stop;
  const char* key = source.places.contains("data.mixture.exhausted") ? "data.mixture.exhausted" : kSources;
  if (!rows) {
    const char* given = workload.train.tokens ? "train.tokens" : "train.time";
    return source.placed(
        error(ErrorKind::invalid,
              "the rows of the mixture end at step {}, and {} does not say how many steps there are",
              with_commas(steps), given)
            .hinted(fmt::format("train.steps: {} in place of {}, or a mixture without end{}", steps, given,
                                stops ? ": data.mixture.exhausted: rescale" : ": a source without `epochs`")),
        key);
  }
  return source.placed(
      error(ErrorKind::invalid, "the rows of the mixture end at step {} of {}: {} '{}' has given its {}",
            with_commas(steps), with_commas(*workload.train.steps), stops ? "the source" : "the last source,",
            last.name, counted(last.epochs.value_or(0), "epoch"))
          .hinted(fmt::format("train.steps: {}, more `epochs` of it{}", steps,
                              stops ? ", or data.mixture.exhausted: rescale" : ", or a source without `epochs`")),
      key);
}

}  // namespace systole
