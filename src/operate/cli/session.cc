#include "operate/cli/session.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <utility>

#include "describe/graph/collectives_of.h"
#include "execute/backends/reference/reference.h"
#include "ground/base/hash.h"
#include "ground/process/machine.h"
#include "operate/cli/rank_threads.h"
#include "operate/cli/version.h"
#include "operate/cli/xla_machine.h"
#include "predict/perf/catalog_speed.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#include "execute/backends/cpu/cpu_isa.h"
#endif

namespace systole::cli {

std::string default_entry(const std::string& target_name) {
  for (const auto& [isa, entry] :
       {std::pair("amx", "cpu-amx"), std::pair("bf16", "cpu-avx512_bf16"), std::pair("avx512", "cpu-avx512")}) {
    if (target_name.find(isa) != target_name.npos) return entry;
  }
  return "cpu-avx2";
}

namespace {
#ifdef SYSTOLE_HAS_CPU
std::string named_machine(const CpuIsa& isa) { return fmt::format("this-machine({})", cpu_numerics(isa)); }
#endif

Result<std::unique_ptr<Device>> open_device(const std::string& backend, const ResourcesSpec& resources,
                                            const LinkCost& link, bool exact) {
  if (backend == "reference") return make_reference_device();
  if (is_xla(backend)) return open_xla_device(backend);
#ifdef SYSTOLE_HAS_CPU
  if (backend == "cpu") {
    CpuOptions options;
    options.threads = static_cast<int>(resources.threads.value_or(allowed_cores()));
    options.exact = exact;
    options.links = {{"host", link.latency, link.bandwidth}};
    return make_cpu_device(options);
  }
#endif
  return error(ErrorKind::unsupported, "this build has no backend '{}'", backend)
      .hinted("--backend reference runs everything, slowly");
}

// What the bits of the device's results depend on.
void tell_numerics(const std::string& backend, Machine& machine) {
  machine.numerics = machine.device->target().name;
#ifdef SYSTOLE_HAS_CPU
  if (backend != "cpu") return;
  machine.isa = to_string(cpu_isa());
  machine.numerics = named_machine(cpu_isa());
#endif
}

Seconds of_function(const ScheduleEstimate& schedule, std::string_view name) {
  for (const auto& [function, time] : schedule.by_function) {
    if (function == name) return time;
  }
  return Seconds();
}

TimeByCategory step_time(const ScheduleEstimate& train) {
  TimeByCategory time;
  time[Category::update] = of_function(train, "update") + of_function(train, "norm");
  time[Category::reduce] = of_function(train, "reduce") + of_function(train, "merge");
  time[Category::compute] = train.time - time[Category::update] - time[Category::reduce];
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
  const bool copies = p.job.program->find_schedule("snapshot") != nullptr;
  const Seconds snapshot = copies ? p.estimate.schedule_named("snapshot").time : Seconds();
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

std::string strategy_text(const Prepared& p) {
  const Mesh& mesh = p.job.program->mesh;
  const std::string rows = fmt::format("{} microbatch{} of {} rows", p.workload.train.microbatches,
                                       p.workload.train.microbatches == 1 ? "" : "es", p.job.microbatch_rows);
  if (const std::optional<ShardTurns>& shards = p.job.program->shards) {
    const std::string cut = fmt::format("exact: {} logical shards of {} rows", shards->shards,
                                        p.job.microbatch_rows * shards->microbatches);
    return mesh.trivial() ? "one device, " + cut
                          : fmt::format("{} devices, {}, {}; rank {} owns {}", mesh.num_devices(), to_string(mesh), cut,
                                        p.rank, shards->owned);
  }
  if (mesh.trivial()) return "one device, " + rows;
  const char* stored = name_of(strategy_of(p.workload).sharding.stored);
  return fmt::format("each of {} devices, {}{}, {} of all", mesh.num_devices(), to_string(mesh),
                     mesh.find("fsdp").ok() ? fmt::format(" ({} in parts over fsdp)", stored) : "", rows);
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
  if (!p.machine.isa.empty()) plan.target.facts["isa"] = p.machine.isa;
  for (const Link& link : target.links) {
    plan.target.facts["link"] =
        fmt::format("{}, {}: {}", to_string(link.latency), to_string(link.bandwidth), p.machine.link_source);
  }
  plan.mesh = p.workload.mesh;
  plan.strategy = strategy_text(p);
  const Schedule& train = p.job.program->schedule_named("train");
  const ScheduleEstimate& estimate = p.estimate.schedule_named("train");
  plan.program.hash = hash_of(*p.job.program);
  plan.program.actions = static_cast<std::int64_t>(train.actions.size());
  plan.program.parameters = num_parameters(*p.job.model);
  plan.program.trainable = num_trainable(*p.job.model);
  plan.program.model_flops = Flops(estimate.work.model_flops);
  plan.program.executed_flops = Flops(estimate.work.flops);
  plan.program.moved = estimate.work.read + estimate.work.written;
  plan.program.sent = bytes_sent(*p.job.program, train, p.rank);
  plan.memory = {p.memory.by_owner, p.memory.arena, limit};
  plan.time = planned_time(p);
  if (const Result<double> ratio = matmul_ratio(estimate, p.machine.speed); ratio.ok()) plan.model_utilisation = *ratio;
  plan.made_by = kVersion;
  plan.made_at = clock.timestamp();
  return plan;
}

// Why the user's calibration does not hold where the machine's identity begins so: it is of another machine, or of a
// day that no clock has come to. Hosts' clocks may be hours apart.
std::optional<Error> refusal_of(const CatalogEntry& own, const std::string& identity, Clock& clock) {
  if (!own.doc.starts_with(identity)) {
    return error(ErrorKind::invalid, "the calibration of {} is of another machine: '{}', this is '{}'", own.date(),
                 own.doc, identity)
        .hinted("systole calibrate");
  }
  const std::string tomorrow = to_iso8601(clock.calendar() + std::chrono::hours(24)).substr(0, 10);
  if (own.date() > tomorrow) {
    return error(ErrorKind::invalid, "the calibration is of {}, which is still to come: today is {}", own.date(),
                 clock.timestamp().substr(0, 10))
        .hinted("systole calibrate, when the clock is right");
  }
  return std::nullopt;
}

const CatalogEntry* own_entry(const Catalog& catalog) {
  const auto own = catalog.entries().find("this-machine");
  return own != catalog.entries().end() ? &own->second : nullptr;
}

Result<RanksLink> link_in(const Catalog& catalog, Clock& clock, std::int64_t ranks, bool over_tcp) {
  const char* transport = over_tcp ? "tcp" : "shm";
  const CatalogEntry* own = own_entry(catalog);
  if (own != nullptr && !refusal_of(*own, processor_name() + "; ", clock)) {
    if (const std::optional<LinkCost> measured = TRY(link_among(*own, transport, ranks)))
      return RanksLink{*measured, fmt::format("{}, systole calibrate of {}", transport, own->date())};
  }
  const CatalogEntry* entry = TRY(catalog.find("ranks-of-one-host"));
  return RanksLink{TRY(link_of(*entry)),
                   fmt::format("{}, the catalog's {} of {}, not calibrated", transport, entry->name, entry->date())};
}

}  // namespace

Result<Catalog> read_catalog(bool chips) {
  std::vector<CatalogFile> files = builtin_catalog_files();
  const std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  std::vector<CatalogFile> own = TRY(read_catalog_folder(folder));
  const bool only_calibrated =
      std::ranges::all_of(own, [](const CatalogFile& file) { return file.name.ends_with("this-machine.yaml"); });
  if (!chips && only_calibrated)
    std::erase_if(files, [](const CatalogFile& file) { return file.name.ends_with("chips.yaml"); });
  std::ranges::move(own, std::back_inserter(files));
  return Catalog::read(files);
}

Result<RanksLink> find_link(Clock& clock, std::int64_t ranks, bool over_tcp) {
  return link_in(TRY(read_catalog(false)), clock, ranks, over_tcp);
}

Status check_threads(std::int64_t threads, const std::string& key) {
  const int cores = allowed_cores();
  if (threads <= cores) return {};
  const std::optional<double> quota = cgroup_cores();
  const std::string by = quota && *quota <= cores ? fmt::format("its control group gives this process {:.4g}", *quota)
                                                  : fmt::format("this process may run on {}", cores);
  return error(ErrorKind::invalid, "{}: {} threads, and {} core{}: a team waits for its slowest", key,
               with_commas(threads), by, by.ends_with(" 1") ? "" : "s")
      .hinted(fmt::format("{}{}{}, or leave it out; systole doctor tells of quotas", key,
                          key.starts_with('-') ? " " : ": ", cores));
}

Status check_threads(const std::string& backend, const ResourcesSpec& resources, const WorkloadSource& source) {
  if (backend != "cpu" || !resources.threads) return {};
  Status fit = check_threads(*resources.threads, "resources.threads");
  return fit.ok() ? fit : source.placed(std::move(fit).error());
}

Status pin_isa(const std::string& backend, const std::string& isa) {
  if (isa.empty()) return {};
#ifdef SYSTOLE_HAS_CPU
  if (backend == "cpu") {
    Status pinned = pin_cpu_isa(TRY(parse_cpu_isa(isa)));
    if (pinned.ok()) return pinned;
    Error lacking = std::move(pinned).error();
    lacking.message = "--pin-isa: " + lacking.message;
    return std::move(lacking).hinted("go on on a machine that has it, or begin with what all of them have");
  }
#endif
  return error(ErrorKind::invalid, "--pin-isa {}: the {} backend computes the same on every machine", isa, backend)
      .hinted("leave --pin-isa out");
}

std::optional<std::string> numerics_pinned_to(const std::string& isa) {
#ifdef SYSTOLE_HAS_CPU
  const Result<CpuIsa> parsed = parse_cpu_isa(isa);
  if (parsed.ok() && has_cpu_isa(*parsed)) return named_machine(*parsed);
#endif
  static_cast<void>(isa);
  return std::nullopt;
}

Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources, Clock& clock,
                             const MachineUse& use) {
  Machine machine;
  const Catalog catalog = TRY(read_catalog(is_xla(backend)));
  const RanksLink link = use.link ? *use.link : TRY(link_in(catalog, clock, use.ranks, use.over_tcp));
  machine.link_source = link.source;
  machine.device = TRY(open_device(backend, resources, link.cost, use.exact));
  tell_numerics(backend, machine);
  machine.identity = fmt::format("{}; {}", processor_name(), machine.device->target().name);
  machine.catalog_entry = is_xla(backend) ? TRY(catalog_entry_of_xla(backend, machine.device->target(), catalog))
                                          : default_entry(machine.device->target().name);
  // Calibration has measured the cpu backend's kernels, not XLA's.
  if (const CatalogEntry* own = own_entry(catalog); own != nullptr && !is_xla(backend)) {
    machine.stale = refusal_of(*own, machine.identity, clock);
    const Result<MachineSpeed> speed = speed_of(*own, machine.device->target().threads);
    if (!machine.stale && !speed.ok()) {
      machine.stale =
          error(ErrorKind::invalid, "the calibration of {} cannot be used: {}", own->date(), speed.error().message)
              .hinted("systole calibrate");
    }
    if (!machine.stale) machine.catalog_entry = "this-machine";
  }
  const CatalogEntry* entry = TRY(catalog.find(machine.catalog_entry));
  machine.catalog_date = entry->date();
  machine.catalog_hash = catalog.hash();
  machine.speed = TRY(speed_of(*entry, machine.device->target().threads));
  machine.speed.link = link.cost;
  if (use.ranks > 1) machine.speed.source += "; ranks speak as " + machine.link_source;
  machine.speed.cores_move_bytes = true;
  return machine;
}

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options) {
  WorkloadSource source;
  return load_workload(path, options, source);
}

Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source) {
  std::stringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return read_workload(text.str(), "standard input", options, source);
  }
  if (std::filesystem::is_directory(path)) {
    const bool run = std::filesystem::exists(path + "/workload.yaml");
    return error(ErrorKind::invalid, "'{}' is a folder, not a workload file", path)
        .hinted(run ? fmt::format("it holds a run: systole resume {}, or its {}/workload.yaml", path, path)
                    : "name the YAML file: examples/quickstart.yaml is one to begin with");
  }
  std::ifstream file(path);
  if (!file) {
    if (std::filesystem::exists(path)) return error(ErrorKind::io, "cannot read '{}': {}", path, std::strerror(errno));
    return error(ErrorKind::not_found, "there is no workload file '{}'", path)
        .hinted("examples/quickstart.yaml is one to begin with");
  }
  text << file.rdbuf();
  return read_workload(text.str(), path, options, source);
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

Error together(std::vector<Error> errors) {
  Error first = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size(); ++i) {
    first.others.push_back(std::move(errors[i]));
    std::vector<Error> behind = std::exchange(first.others.back().others, {});
    std::move(behind.begin(), behind.end(), std::back_inserter(first.others));
  }
  return first;
}

Bytes limit_of(const Workload& workload, const PrepareOptions& options) {
  if (options.memory_limit) return *options.memory_limit;
  return workload.resources.memory.value_or(memory_limit());
}

Result<Prepared> prepare(const Workload& workload, PrepareOptions& options, Clock& clock) {
  Prepared p;
  p.workload = workload;
  p.rank = options.rank;
  TRY(check_threads(options.backend, workload.resources, options.source));
  if (is_xla(options.backend)) TRY(check_xla(workload, options.source));
  p.machine = TRY(open_machine(options.backend, workload.resources, clock,
                               {ranks_of(workload), workload.train.exact, options.over_tcp, options.link}));
  Result<Data> data = prepare_data(workload, options.source, options.progress, true, options.data_patience);
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
    Result<HfFolder> weights = open_hf_folder(workload.model.weights, workload.model);
    if (!weights.ok()) return options.source.placed(std::move(weights).error(), "model.weights");
    p.weights = std::move(*weights);
  }
  p.executor = TRY(Executor::prepare(*p.job.program, *p.machine.device));
  if (p.data.dataset) {
    p.outside.dataset = p.data.resident();
    p.outside.data_queue = RowReader::planned(
        p.data.dataset->train->packing,
        row_options(workload, p.data.dataset->tokenizer, workload.train.batch, RowPass::endless, clock));
    if (p.data.dataset->held_out) {
      p.outside.data_queue += RowReader::planned(
          p.data.dataset->held_out->packing,
          row_options(workload, p.data.dataset->tokenizer, p.job.evaluation_rows, RowPass::once, clock));
    }
  }
  p.outside.libraries =
      planned_libraries(*p.job.program, p.data.dataset ? p.data.dataset->tokenizer.resident() : Bytes());
  if (!workload.model.weights.empty()) p.outside.weights = kImportBytes;
  p.memory = is_xla(options.backend) ? plan_memory(*p.job.program, temporaries_of(*p.machine.device))
                                     : plan_memory(*p.job.program, p.outside);
  p.estimate = estimate(*p.job.program, p.machine.speed);
  p.plan = make_plan(p, limit_of(workload, options), clock);
  return p;
}

}  // namespace systole::cli
