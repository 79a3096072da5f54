#include "operate/run/plan_run.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "describe/partition/pipeline.h"
#include "describe/program/collectives_of.h"
#include "execute/data/formats/record_file.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/feed_here.h"
#include "operate/run/make_plan.h"
#include "operate/run/origin.h"
#include "operate/run/run_mixture.h"
#include "operate/run/shapes_here.h"
#include "operate/run/xla_machine.h"
#include "predict/perf/stages_time.h"

namespace systole {

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options) {
  WorkloadSource source;
  return load_workload(path, options, source);
}

RowReaderOptions training_rows(const PlannedRun& p) {
  RowReaderOptions options =
      row_options(p.workload, p.data.dataset->tokenizer, p.workload.train.batch, RowPass::endless);
  options.readers = p.feed->readers;
  options.queue_batches = p.feed->queue;
  return options;
}

namespace {

Result<Workload> workload_in(const std::string& path, const WorkloadOptions& options, WorkloadSource& source) {
  constexpr Bytes kMost{kMostYaml};
  if (path == "-") {
    const std::string text = TRY(read_text_from(STDIN_FILENO, "standard input", kMost));
    return read_workload(text, "standard input", options, source);
  }
  if (is_folder(path)) {
    const bool run = path_exists(path + "/workload.yaml");
    return error(ErrorKind::invalid, "'{}' is a folder, not a workload file", path)
        .hinted(run ? fmt::format("it holds a run: systole resume {}, or its {}/workload.yaml", shell_word(path), path)
                    : "name the YAML file: examples/quickstart.yaml is one to begin with");
  }
  if (is_file(path) && record_format_of(path)) {
    return error(ErrorKind::invalid, "'{}' is a file of records, not a workload file", path)
        .hinted(fmt::format("a workload names it: data: {{ train: {{ files: {} }} }}", path));
  }
  const Result<std::string> text = read_text_file(path, kMost);
  if (text.ok()) return read_workload(*text, path, options, source);
  if (text.error().kind != ErrorKind::not_found) return text.error();
  return error(ErrorKind::not_found, "there is no workload file '{}'", path)
      .hinted("examples/quickstart.yaml is one to begin with");
}

}  // namespace

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source) {
  Workload workload = TRY(workload_in(path, options, source));
  TRY(check_checkpoint_folder(workload.checkpoint, source));
  return workload;
}

Error told_of_job(const WorkloadSource& source, Error error) {
  if (error.hint.empty() && error.kind == ErrorKind::invalid)
    error.hint = "sizes under model and train.batch multiply: make one of them smaller";
  return source.placed(std::move(error));
}

Bytes limit_of(const Workload& workload, const PrepareOptions& options) {
  const Bytes of_node =
      options.memory_limit ? *options.memory_limit : workload.resources.memory.value_or(memory_limit());
  return Bytes(of_node.count() / options.sharers);
}

namespace {

OutsideArena outside_of(const PlannedRun& p, const Program& program) {
  OutsideArena outside;
  if (p.data.dataset) {
    outside.dataset = p.data.resident();
    outside.data_queue = RowReader::planned(p.data.dataset->train->packing, training_rows(p));
    if (p.data.dataset->held_out) {
      outside.data_queue +=
          RowReader::planned(p.data.dataset->held_out->packing,
                             row_options(p.workload, p.data.dataset->tokenizer, p.job.evaluation_rows, RowPass::once));
    }
  }
  outside.libraries = planned_libraries(program, p.data.dataset ? p.data.dataset->tokenizer.resident() : Bytes());
  if (!p.workload.model.weights.empty()) outside.weights = kImportBytes;
  return outside;
}

PlannedFeed feed_of(const PlannedRun& p) {
  const std::vector<PlannedShape> shapes = planned_shapes(p.job, &*p.epoch, p.estimate);
  const bool known = !p.estimate.unknown;
  return feed_here(p.workload, *p.data.dataset, *p.epoch,
                   known ? std::optional(mean_step(p.job, p.estimate, shapes).time) : std::nullopt);
}

// Plans the memory of the other pipeline stages, and adds to the estimate the time this rank waits for them. Their
// Programs are built for this and then dropped.
Status look_at_stages(PlannedRun& p) {
  const Program& own = *p.job.program;
  const auto pipe = own.mesh.find(kPipelineAxis);
  if (!pipe.ok()) return {};
  std::vector<Job> jobs;
  std::vector<Estimate> estimates;
  std::vector<StageOfTime> stages;
  Coordinates at = own.mesh.coordinates(p.rank);
  const auto stage = static_cast<std::size_t>(at[*pipe]), count = static_cast<std::size_t>(own.mesh.axes()[*pipe].size);
  jobs.reserve(count), estimates.reserve(count);
  for (std::size_t s = 0; s < count; ++s) {
    if (s == stage) {
      stages.push_back({&own, &p.estimate});
      continue;
    }
    at[*pipe] = static_cast<std::int64_t>(s);
    const std::int64_t rank = own.mesh.device_at(at);
    jobs.push_back(TRY(make_job(p.workload, *p.machine.device, rank, row_lengths_of(p.data))));
    const Program& program = *jobs.back().program;
    StageMemory other{rank, outside_of(p, program), {}};
    other.memory = plan_memory(program, other.outside);
    p.other_stages.push_back(std::move(other));
    estimates.push_back(estimate(program, p.machine.speed));
    stages.push_back({&program, &estimates.back()});
  }
  Estimate among = among_stages(stages, stage, p.machine.speed.cores_move_bytes);
  for (const Estimate& other : estimates)
    if (!among.unknown) among.unknown = other.unknown;
  p.estimate = std::move(among);
  return {};
}

// Finds the checkpoint that a new run begins from (resume.from).
Status find_beginning(PlannedRun& p, const PrepareOptions& options) {
  const Workload& workload = p.workload;
  if (workload.resume.from.empty() || !options.begins || options.has_begun || options.alone) return {};
  p.origin = std::make_shared<const Origin>(TRY(find_origin(workload, options.source)));
  TRY(fits_origin(workload, *p.origin, options.source));
  p.workload.resume.from = p.origin->name;
  return {};
}

// Opens the machine; XLA's devices are opened at the first use.
Result<Machine> machine_of(const Workload& workload, PrepareOptions& options, Clock& clock) {
  TRY(check_threads(options.backend, workload.resources, options.source));
  if (is_xla(options.backend)) {
    TRY(check_xla(workload, options.source));
    if (options.xla == nullptr)
      options.xla =
          TRY(open_xla_host(options.backend, workload.num_devices(), TRY(read_catalog()), workload.train.exact));
  }
  return open_machine(options.backend, workload.resources, clock,
                      {workload.num_devices(), workload.train.exact, options.over_tcp, options.link, options.xla,
                       options.rank, workload.ranks.tls});
}

Result<Data> data_of(const Workload& workload, PrepareOptions& options) {
  options.data.apart = true;
  Result<Data> data = prepare_data(workload, options.source, options.data);
  if (data.ok() || !options.data_may_be_absent || data.error().kind != ErrorKind::not_found) return data;
  options.notes.push_back(std::move(data).error());
  return Data();
}

// What data.drop_remainder leaves is checked by the plan, too, not by the run's reader alone.
Status check_filled(const Workload& workload, const Data& data, const WorkloadSource& source) {
  if (!data.dataset || !data.dataset->train) return {};
  Status filled =
      RowReader::fills_steps(data.dataset->train->packing,
                             row_options(workload, data.dataset->tokenizer, workload.train.batch, RowPass::endless));
  return filled.ok() ? filled : source.placed(std::move(filled).error(), "data.drop_remainder");
}

// Initial weights of a run that begins.
Result<std::optional<HfFolder>> weights_of(const Workload& workload, const Program& program,
                                           const PrepareOptions& options) {
  if (workload.model.weights.empty() || !options.begins) return std::optional<HfFolder>();
  if (program.mesh.find(kPipelineAxis).ok()) {
    return options.source.placed(
        error(ErrorKind::unsupported, "the stages of a pipeline do not begin from model.weights yet")
            .hinted("begin on a mesh without the axis pipe, and resume on one with it: a checkpoint knows no stages"),
        "model.weights");
  }
  Result<HfFolder> weights = open_hf_folder(workload.model.weights, workload.model);
  if (!weights.ok()) return options.source.placed(std::move(weights).error(), "model.weights");
  return std::optional<HfFolder>(std::move(*weights));
}

Result<std::unique_ptr<Executor>> compiled(const Job& job, Device& device, TimeLedger* ledger) {
  std::optional<InCategory> compiling;
  if (ledger != nullptr) compiling.emplace(*ledger, Category::compile);
  return Executor::prepare(*job.program, device);
}

// A chip's limit is at most the memory it has.
Bytes limit_on(const Machine& machine, const Workload& workload, const PrepareOptions& options) {
  const Bytes limit = limit_of(workload, options), own = machine.device->target().memory_limit;
  if (!is_xla(options.backend) || own <= Bytes()) return limit;
  const bool asked = options.memory_limit || workload.resources.memory || options.sharers > 1;
  return asked ? std::min(limit, own) : own;
}

}  // namespace

Result<PlannedRun> prepare(const Workload& workload, PrepareOptions& options, Clock& clock, TimeLedger* ledger) {
  PlannedRun p;
  p.workload = workload;
  p.rank = options.rank;
  TRY(find_beginning(p, options));
  const Status shapes = check_shapes(workload);  // before the data are built
  if (!shapes.ok()) return told_of_job(options.source, shapes.error());
  p.machine = TRY(machine_of(workload, options, clock));
  p.data = TRY(data_of(workload, options));
  TRY(check_mixture_lasts(workload, p.data, options.source));
  TRY(check_filled(workload, p.data, options.source));
  if (p.data.dataset) p.epoch = rows_of(workload, p.data.dataset->train->packing);
  Result<Job> job = make_job(workload, *p.machine.device, options.rank, row_lengths_of(p.data));
  if (!job.ok()) return told_of_job(options.source, std::move(job).error());
  p.job = *std::move(job);
  p.weights = TRY(weights_of(workload, *p.job.program, options));
  if (p.origin) TRY(fits_origin(p, options.source));
  p.executor = TRY(compiled(p.job, *p.machine.device, ledger));
  p.estimate = estimate(*p.job.program, p.machine.speed);
  if (p.data.dataset) p.feed = feed_of(p);
  p.outside = outside_of(p, *p.job.program);
  p.memory = is_xla(options.backend) ? plan_memory(*p.job.program, temporaries_of(*p.machine.device))
                                     : plan_memory(*p.job.program, p.outside);
  if (!options.alone) TRY(look_at_stages(p));
  p.bound = {options.memory_limit.has_value(), options.sharers};
  p.plan = make_plan(p, limit_on(p.machine, workload, options), clock);
  return p;
}

std::optional<Error> idle_axes(const PlannedRun& p) {
  const std::vector<Axis> unused = unused_axes(*p.job.program);
  if (unused.empty()) return std::nullopt;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // the suggestion: idle axes folded into the axis of rows
  std::vector<std::string> told;
  std::int64_t idle = 1;
  for (const Axis& axis : unused) {
    told.push_back(fmt::format("'{}' of {}", axis.name, axis.size));
    idle *= axis.size;
  }
  bool rows = false;
  for (const auto& [axis, size] : p.workload.mesh) {
    if (std::ranges::find(unused, axis, &Axis::name) != unused.end() || size == 1) continue;
    const bool cuts_rows = !rows && (axis == "data" || axis == "fsdp");
    rows = rows || cuts_rows;
    mesh.emplace_back(axis, cuts_rows ? size * idle : size);
  }
  if (!rows) mesh.emplace(mesh.begin(), "data", idle);
  std::vector<std::string> axes;
  for (const auto& [axis, size] : mesh) axes.push_back(fmt::format("{}: {}", axis, size));
  return key_error(ErrorKind::invalid, "mesh",
                   "nothing of this model is cut along the ax{} {}: {} devices at a time do the same work",
                   unused.size() == 1 ? "is" : "es", fmt::join(told, " and "), idle)
      .hinted(fmt::format("--set 'mesh={{{}}}' cuts the batch among all devices", fmt::join(axes, ", ")));
}

Status fits(const PlannedRun& p) {
  const Bytes limit = p.plan.memory.limit;
  TRY(check_fit(p.workload, p.memory, p.outside, limit, *p.machine.device, p.rank, p.bound));
  for (const StageMemory& other : p.other_stages)
    TRY(check_fit(p.workload, other.memory, other.outside, limit, *p.machine.device, other.rank, p.bound));
  return {};
}

}  // namespace systole
