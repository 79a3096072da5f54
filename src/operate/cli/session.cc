#include "operate/cli/session.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "describe/graph/collectives_of.h"
#include "describe/graph/partition/pipeline.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "ground/process/machine.h"
#include "operate/cli/make_plan.h"
#include "operate/cli/origin.h"
#include "operate/cli/rank_threads.h"
#include "operate/cli/xla_machine.h"
#include "predict/perf/stages_time.h"

namespace systole::cli {

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options) {
  WorkloadSource source;
  return load_workload(path, options, source);
}

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source) {
  constexpr Bytes kMost{kMostYaml};
  if (path == "-") {
    const std::string text = TRY(read_text_from(STDIN_FILENO, "standard input", kMost));
    return read_workload(text, "standard input", options, source);
  }
  if (is_folder(path)) {
    const bool run = path_exists(path + "/workload.yaml");
    return error(ErrorKind::invalid, "'{}' is a folder, not a workload file", path)
        .hinted(run ? fmt::format("it holds a run: systole resume {}, or its {}/workload.yaml", path, path)
                    : "name the YAML file: examples/quickstart.yaml is one to begin with");
  }
  const Result<std::string> text = read_text_file(path, kMost);
  if (text.ok()) return read_workload(*text, path, options, source);
  if (text.error().kind != ErrorKind::not_found) return text.error();
  return error(ErrorKind::not_found, "there is no workload file '{}'", path)
      .hinted("examples/quickstart.yaml is one to begin with");
}

RowReaderOptions row_options(const Workload& workload, const Tokenizer& tokenizer, std::int64_t batch_rows,
                             RowPass pass, Clock& clock) {
  RowReaderOptions options;
  const DataSpec& data = workload.data;
  if (workload.model.family == ModelSpec::Family::bert) {
    options.masking = Masking{data.masked_share,     data.masked_hidden,
                              data.masked_random,    static_cast<std::uint64_t>(data.seed),
                              tokenizer.eos(),       std::max(tokenizer.bos(), tokenizer.eos()) + 1,
                              tokenizer.vocabulary()};
  }
  if (workload.model.family == ModelSpec::Family::t5) options.target_length = workload.model.target_context;
  options.batch_rows = batch_rows;
  options.pass = pass;
  options.seed = static_cast<std::uint64_t>(workload.data.seed);
  options.clock = &clock;
  return options;
}

Error told_of_job(const WorkloadSource& source, Error error) {
  if (error.hint.empty() && error.kind == ErrorKind::invalid)
    error.hint = "sizes under model and train.batch multiply: make one of them smaller";
  return source.placed(std::move(error));
}

Error together(std::vector<Error> errors) { return systole::together(std::move(errors)); }

Bytes limit_of(const Workload& workload, const PrepareOptions& options) {
  const Bytes of_node =
      options.memory_limit ? *options.memory_limit : workload.resources.memory.value_or(memory_limit());
  return Bytes(of_node.count() / options.sharers);
}

namespace {

OutsideArena outside_of(const Prepared& p, const Program& program, Clock& clock) {
  OutsideArena outside;
  if (p.data.dataset) {
    outside.dataset = p.data.resident();
    outside.data_queue = RowReader::planned(
        p.data.dataset->train->packing,
        row_options(p.workload, p.data.dataset->tokenizer, p.workload.train.batch, RowPass::endless, clock));
    if (p.data.dataset->held_out) {
      outside.data_queue += RowReader::planned(
          p.data.dataset->held_out->packing,
          row_options(p.workload, p.data.dataset->tokenizer, p.job.evaluation_rows, RowPass::once, clock));
    }
  }
  outside.libraries = planned_libraries(program, p.data.dataset ? p.data.dataset->tokenizer.resident() : Bytes());
  if (!p.workload.model.weights.empty()) outside.weights = kImportBytes;
  return outside;
}

// What the other stages of the pipeline need, and in the estimate what this rank waits for them. Their Programs are
// made for that, and kept no longer.
Status look_at_stages(Prepared& p, Clock& clock) {
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
    jobs.push_back(TRY(make_job(p.workload, *p.machine.device, rank)));
    const Program& program = *jobs.back().program;
    StageMemory other{rank, outside_of(p, program, clock), {}};
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

}  // namespace

Result<Prepared> prepare(const Workload& workload, PrepareOptions& options, Clock& clock, TimeLedger* ledger) {
  Prepared p;
  p.workload = workload;
  p.rank = options.rank;
  if (!workload.resume.from.empty() && options.begins && !options.has_begun && !options.alone) {
    p.origin = std::make_shared<const Origin>(TRY(find_origin(workload, options.source)));
    TRY(fits_origin(workload, *p.origin, options.source));
    p.workload.resume.from = p.origin->name;
  }
  TRY(check_threads(options.backend, workload.resources, options.source));
  if (is_xla(options.backend)) {
    TRY(check_xla(workload, options.source));
    if (options.xla == nullptr)
      options.xla = TRY(open_xla_host(options.backend, ranks_of(workload), TRY(read_catalog()), workload.train.exact));
  }
  p.machine = TRY(open_machine(options.backend, workload.resources, clock,
                               {ranks_of(workload), workload.train.exact, options.over_tcp, options.link, options.xla,
                                options.rank, workload.ranks.tls}));
  options.data.apart = true;
  Result<Data> data = prepare_data(workload, options.source, options.data);
  if (data.ok()) {
    p.data = std::move(*data);
  } else if (options.data_may_be_absent && data.error().kind == ErrorKind::not_found) {
    options.notes.push_back(std::move(data).error());
  } else {
    return std::move(data).error();
  }
  Result<Job> job = make_job(workload, *p.machine.device, options.rank);
  if (!job.ok()) return told_of_job(options.source, std::move(job).error());
  p.job = *std::move(job);
  if (!workload.model.weights.empty() && options.begins) {
    if (p.job.program->mesh.find(kPipelineAxis).ok()) {
      return options.source.placed(
          error(ErrorKind::unsupported, "the stages of a pipeline do not begin from model.weights yet")
              .hinted("begin on a mesh without the axis pipe, and resume on one with it: a checkpoint knows no stages"),
          "model.weights");
    }
    Result<HfFolder> weights = open_hf_folder(workload.model.weights, workload.model);
    if (!weights.ok()) return options.source.placed(std::move(weights).error(), "model.weights");
    p.weights = std::move(*weights);
  }
  if (p.origin) TRY(fits_origin(p, options.source));
  {
    std::optional<InCategory> compiling;
    if (ledger != nullptr) compiling.emplace(*ledger, Category::compile);
    p.executor = TRY(Executor::prepare(*p.job.program, *p.machine.device));
  }
  p.outside = outside_of(p, *p.job.program, clock);
  p.memory = is_xla(options.backend) ? plan_memory(*p.job.program, temporaries_of(*p.machine.device))
                                     : plan_memory(*p.job.program, p.outside);
  p.estimate = estimate(*p.job.program, p.machine.speed);
  if (!options.alone) TRY(look_at_stages(p, clock));
  Bytes limit = limit_of(workload, options);
  // A chip has memory of its own, and no more of it than there is.
  if (const Bytes own = p.machine.device->target().memory_limit; is_xla(options.backend) && own > Bytes())
    limit = options.memory_limit || workload.resources.memory || options.sharers > 1 ? std::min(limit, own) : own;
  p.bound = {options.memory_limit.has_value(), options.sharers};
  p.plan = make_plan(p, limit, clock);
  return p;
}

std::optional<Error> idle_axes(const Prepared& p) {
  const std::vector<Axis> unused = unused_axes(*p.job.program);
  if (unused.empty()) return std::nullopt;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // all devices at work
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
  return error(ErrorKind::invalid,
               "mesh: nothing of this model is cut along the ax{} {}: {} devices at a time do the same work",
               unused.size() == 1 ? "is" : "es", fmt::join(told, " and "), idle)
      .hinted(fmt::format("--set 'mesh={{{}}}' cuts the batch among all devices", fmt::join(axes, ", ")));
}

Status fits(const Prepared& p) {
  const Bytes limit = p.plan.memory.limit;
  TRY(check_fit(p.workload, p.memory, p.outside, limit, *p.machine.device, p.rank, p.bound));
  for (const StageMemory& other : p.other_stages)
    TRY(check_fit(p.workload, other.memory, other.outside, limit, *p.machine.device, other.rank, p.bound));
  return {};
}

}  // namespace systole::cli
