#include "operate/cli/session.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "execute/backends/reference/reference.h"
#include "ground/base/hash.h"
#include "ground/process/machine.h"
#include "ground/store/lock.h"
#include "operate/cli/version.h"
#include "predict/perf/catalog_speed.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole::cli {
namespace {

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

// Paths of the store whose root is "/".
std::vector<std::string> below_root(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  for (const std::string& path : paths) result.push_back(absolute(path).substr(1));
  return result;
}

TextOptions text_options(const TextSpec& spec) {
  TextOptions options;
  options.document = static_cast<DocumentRule>(spec.document);
  options.invalid_utf8 = static_cast<InvalidUtf8>(spec.invalid_utf8);
  options.format = static_cast<TextFormat>(spec.format);
  options.field = spec.field;
  options.largest_document = spec.largest_document;
  return options;
}
static_assert(static_cast<int>(TextSpec::Document::blank_line) == static_cast<int>(DocumentRule::blank_line) &&
              static_cast<int>(TextSpec::InvalidUtf8::bytes) == static_cast<int>(InvalidUtf8::bytes) &&
              static_cast<int>(TextSpec::Format::jsonl) == static_cast<int>(TextFormat::jsonl));

Result<Catalog> read_catalog() {
  std::vector<CatalogFile> files = builtin_catalog_files();
  const std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  for (CatalogFile& file : TRY(read_catalog_folder(folder))) files.push_back(std::move(file));
  return Catalog::read(files);
}

// The instruction set in the device's name → the entry of the catalog.
std::string default_entry(const std::string& target_name) {
  for (const auto& [isa, entry] :
       {std::pair("amx", "cpu-amx"), std::pair("bf16", "cpu-avx512_bf16"), std::pair("avx512", "cpu-avx512")}) {
    if (target_name.find(isa) != target_name.npos) return entry;
  }
  return "cpu-avx2";
}

Result<std::unique_ptr<Device>> open_device(const std::string& backend, const ResourcesSpec& resources) {
  if (backend == "reference") return make_reference_device();
#ifdef SYSTOLE_HAS_CPU
  if (backend == "cpu") {
    CpuOptions options;
    if (resources.threads) options.threads = static_cast<int>(*resources.threads);
    return make_cpu_device(options);
  }
#endif
  return error(ErrorKind::unsupported, "this build has no backend '{}'", backend)
      .hinted("--backend reference runs everything, slowly");
}

Seconds of_function(const ScheduleEstimate& schedule, std::string_view name) {
  for (const auto& [function, time] : schedule.by_function) {
    if (function == name) return time;
  }
  return Seconds();
}

TimeByCategory step_time(const ScheduleEstimate& train) {
  TimeByCategory time;
  time[Category::update] = of_function(train, "update");
  time[Category::compute] = train.time - time[Category::update];
  return time;
}

std::int64_t evaluation_batches(const Prepared& p) {
  if (p.job.evaluation_rows == 0) return 0;
  std::int64_t rows = p.workload.data.held_out_rows;
  if (p.data.dataset && p.data.dataset->held_out) rows = p.data.dataset->held_out->packing.rows();
  return (rows + p.job.evaluation_rows - 1) / p.job.evaluation_rows;
}

// How often an interval falls into the run.
double times_of(const Interval& interval, double steps, Seconds whole) {
  if (interval.steps > 0) return steps / static_cast<double>(interval.steps);
  return interval.time > Seconds() ? whole / interval.time : 0;
}

PlannedTime planned_time(const Prepared& p) {
  const ScheduleEstimate& train = p.estimate.schedule_named("train");
  PlannedTime time;
  time.step = step_time(train);
  const TrainSpec& spec = p.workload.train;
  const Seconds step = time.step.total();
  const Schedule* evaluate = p.job.program->find_schedule("evaluate");
  const Seconds evaluation =
      evaluate != nullptr ? p.estimate.schedule_named("evaluate").time * static_cast<double>(evaluation_batches(p))
                          : Seconds();
  const Seconds snapshot = p.estimate.schedule_named("snapshot").time;
  const double labels = p.data.dataset
                            ? static_cast<double>(p.data.dataset->train->packing.tokens) /
                                  static_cast<double>(std::max<std::int64_t>(1, p.data.dataset->train->packing.rows()))
                            : static_cast<double>(std::max<std::int64_t>(1, p.job.model->context()));
  if (spec.steps) time.steps = static_cast<double>(*spec.steps);
  if (spec.tokens) time.steps = static_cast<double>(*spec.tokens) / (labels * static_cast<double>(spec.batch));
  if (spec.time) time.steps = *spec.time / step;
  const Seconds whole = step * time.steps;
  const double saves = times_of(p.workload.checkpoint.every, time.steps, whole) + 1,
               evaluations = times_of(spec.evaluate, time.steps, whole) + 1;
  for (int c = 0; c < kNumCategories; ++c)
    time.run[static_cast<Category>(c)] = time.step[static_cast<Category>(c)] * time.steps;
  time.run[Category::snapshot] = snapshot * saves;
  time.run[Category::evaluation] = evaluation * evaluations;
  for (int c = 0; c < kNumOpClasses; ++c) {
    const auto op_class = static_cast<OpClass>(c);
    if (train.busy[op_class] > Seconds()) time.compute_by_kind.emplace_back(name_of(op_class), train.busy[op_class]);
  }
  std::sort(time.compute_by_kind.begin(), time.compute_by_kind.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return time;
}

Plan make_plan(const Prepared& p, Bytes limit, Clock& clock) {
  Plan plan;
  plan.workload = p.workload;
  const Target& target = p.job.program->target;
  plan.target = {target.name,
                 {},
                 p.machine.catalog_entry,
                 p.machine.catalog_date,
                 p.machine.catalog_hash,
                 p.machine.speed.calibrated};
  plan.target.facts = {{"kind", target.kind},
                       {"alignment", std::to_string(target.alignment)},
                       {"threads", std::to_string(target.threads)},
                       {"chains", target.fusion.chains ? "fused" : "not fused"}};
  plan.mesh = p.workload.mesh;
  plan.strategy = fmt::format("one device, {} microbatch{} of {} rows", p.workload.train.microbatches,
                              p.workload.train.microbatches == 1 ? "" : "es", p.job.microbatch_rows);
  const Schedule& train = p.job.program->schedule_named("train");
  const ScheduleEstimate& estimate = p.estimate.schedule_named("train");
  plan.program.hash = hash_of(*p.job.program);
  plan.program.actions = static_cast<std::int64_t>(train.actions.size());
  plan.program.parameters = num_parameters(*p.job.model);
  plan.program.trainable = num_trainable(*p.job.model);
  plan.program.model_flops = Flops(estimate.work.model_flops);
  plan.program.executed_flops = Flops(estimate.work.flops);
  plan.program.moved = estimate.work.read + estimate.work.written;
  plan.memory = {p.memory.by_owner, p.memory.arena, limit};
  plan.time = planned_time(p);
  if (const Result<double> ratio = matmul_ratio(estimate, p.machine.speed); ratio.ok()) plan.model_utilisation = *ratio;
  plan.made_by = kVersion;
  plan.made_at = clock.timestamp();
  return plan;
}

// build_dataset, with the making in a copy of this process. Should the copy fail, this one makes it, and says why it
// cannot.
Result<Dataset> build_apart(Store& folder, BuildOptions& options) {
  bool is_copy = false;
  options.made_elsewhere = [&is_copy] {
    const pid_t copy = fork();
    if (copy == 0) {
      is_copy = true;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      return false;
    }
    int status = 0;
    while (copy > 0 && waitpid(copy, &status, 0) < 0 && errno == EINTR) continue;
    return copy > 0;
  };
  try {
    Result<Dataset> built = build_dataset(folder, options);
    if (is_copy) _exit(built.ok() ? 0 : 1);
    return built;
  } catch (...) {
    if (is_copy) _exit(1);
    throw;
  }
}

}  // namespace

Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources) {
  Machine machine;
  machine.device = TRY(open_device(backend, resources));
  const Catalog catalog = TRY(read_catalog());
  machine.catalog_entry =
      catalog.entries().contains("this-machine") ? "this-machine" : default_entry(machine.device->target().name);
  const CatalogEntry* entry = TRY(catalog.find(machine.catalog_entry));
  machine.catalog_date = entry->date();
  machine.catalog_hash = catalog.hash();
  machine.speed = TRY(speed_of(*entry, machine.device->target().threads));
  return machine;
}

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options) {
  std::stringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return read_workload(text.str(), "standard input", options);
  }
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    return error(ErrorKind::not_found, "there is no workload file '{}'", path)
        .hinted("examples/quickstart.yaml is one to begin with");
  }
  text << file.rdbuf();
  return read_workload(text.str(), path, options);
}

Bytes Data::resident() const {
  Bytes bytes;
  if (!dataset) return bytes;
  if (dataset->train) bytes += dataset->train->resident();
  if (dataset->held_out) bytes += dataset->held_out->resident();
  return bytes;
}

Result<Data> prepare_data(const Workload& workload, const systole::cli::Progress& progress, bool apart) {
  Data data;
  if (workload.data.kind != DataSpec::Kind::text) return data;
  data.files = TRY(open_posix_store("/"));
  std::error_code failed;
  std::filesystem::create_directories(workload.data.folder, failed);
  if (failed) {
    return error(ErrorKind::io, "cannot make the folder '{}': {}", workload.data.folder, failed.message())
        .hinted("data.folder: a folder that may be written");
  }
  data.folder = TRY(open_posix_store(workload.data.folder));
  const std::unique_ptr<FileLock> lock = TRY(lock_folder(workload.data.folder));
  BuildOptions options;
  const auto files = [&](const TextSpec& spec) { return expand_files(*data.files, below_root(spec.files)); };
  options.train = {data.files.get(), TRY(files(workload.data.train)), "/"};
  options.train_text = text_options(workload.data.train);
  if (!workload.data.held_out.files.empty())
    options.held_out = TextFiles{data.files.get(), TRY(files(workload.data.held_out)), "/"};
  options.held_out_text = text_options(workload.data.held_out);
  options.held_out_fraction = workload.data.held_out_fraction;
  options.seed = static_cast<std::uint64_t>(workload.data.seed);
  options.tokenizer.kind = workload.data.tokenizer.algorithm == TokenizerSpec::Algorithm::unigram
                               ? TokenizerKind::unigram
                               : TokenizerKind::bpe;
  options.tokenizer.vocabulary = static_cast<int>(workload.data.tokenizer.vocabulary);
  options.tokenizer.sample = workload.data.tokenizer.sample;
  if (!workload.data.tokenizer.file.empty()) {
    options.tokenizer_model = TRY(read_text(*data.files, below_root({workload.data.tokenizer.file})[0]));
  }
  options.row_length = workload.model.context;
  options.policy = workload.data.packing ? PackingPolicy::packed : PackingPolicy::padded;
  options.threads = allowed_cores();
  options.progress = progress;
  data.dataset = TRY(apart ? build_apart(*data.folder, options) : build_dataset(*data.folder, options));
  if (data.dataset->tokenizer.vocabulary() > workload.model.vocabulary) {
    return error(ErrorKind::invalid, "model.vocabulary is {}, the tokenizer has {} tokens", workload.model.vocabulary,
                 data.dataset->tokenizer.vocabulary())
        .hinted(fmt::format("model.vocabulary: {} or more", data.dataset->tokenizer.vocabulary()));
  }
  malloc_trim(0);  // what building took is not the run's
  return data;
}

RowReaderOptions row_options(const Workload& workload, std::int64_t batch_rows, RowPass pass, Clock& clock) {
  RowReaderOptions options;
  options.batch_rows = batch_rows;
  options.pass = pass;
  options.seed = static_cast<std::uint64_t>(workload.data.seed);
  options.clock = &clock;
  return options;
}

Bytes limit_of(const Workload& workload, const PrepareOptions& options) {
  if (options.memory_limit) return *options.memory_limit;
  return workload.resources.memory.value_or(memory_limit());
}

Result<Prepared> prepare(const Workload& workload, PrepareOptions& options, Clock& clock) {
  Prepared p;
  p.workload = workload;
  p.machine = TRY(open_machine(options.backend, workload.resources));
  Result<Data> data = prepare_data(workload, options.progress, true);
  if (data.ok()) {
    p.data = std::move(*data);
  } else if (options.data_may_be_absent && data.error().kind == ErrorKind::not_found) {
    options.notes.push_back(data.error().message + ": the memory of its tables is not counted");
  } else {
    return std::move(data).error();
  }
  p.job = TRY(make_job(workload, *p.machine.device));
  p.executor = TRY(Executor::prepare(*p.job.program, *p.machine.device));
  if (p.data.dataset) {
    p.outside.dataset = p.data.resident();
    p.outside.data_queue = RowReader::planned(p.data.dataset->train->packing,
                                              row_options(workload, workload.train.batch, RowPass::endless, clock));
    if (p.data.dataset->held_out) {
      p.outside.data_queue += RowReader::planned(p.data.dataset->held_out->packing,
                                                 row_options(workload, p.job.evaluation_rows, RowPass::once, clock));
    }
  }
  p.outside.libraries = planned_libraries(*p.job.program, p.data.dataset ? p.data.dataset->tokenizer.vocabulary() : 0);
  p.memory = plan_memory(*p.job.program, p.outside);
  p.estimate = estimate(*p.job.program, p.machine.speed);
  p.plan = make_plan(p, limit_of(workload, options), clock);
  return p;
}

}  // namespace systole::cli
