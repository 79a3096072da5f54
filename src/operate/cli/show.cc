// `systole show graph | program | schedule | stablehlo WORKLOAD`: the parts of a compiled workload, as text.

#include <fmt/ranges.h>

#include "describe/ir/text.h"
#include "describe/partition/fused_step.h"
#include "describe/program/program_summary.h"
#include "describe/stablehlo/module.h"
#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {
namespace {

struct ShowOptions {
  WorkloadArguments workload;
  std::string part;     // a function, or a schedule
  bool all = false;     // the whole Program
  bool unroll = false;  // for a module
};

struct Planned {
  Machine machine;
  Job job;
};

Planned planned(const ShowOptions& options, Clock& clock) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  check_threads(options.workload.backend, loaded.workload.resources, loaded.source).value();
  pin_isa(options.workload.backend, options.workload.pin_isa).value();
  Planned result{open_machine(options.workload.backend, loaded.workload.resources, clock,
                              {.ranks = loaded.workload.num_devices(), .exact = loaded.workload.train.exact})
                     .value(),
                 {}};
  Result<Job> job = make_job(loaded.workload, *result.machine.device);
  if (!job.ok()) fail(told_of_job(loaded.source, std::move(job).error()));
  result.job = *std::move(job);
  return result;
}

ExitCode print(Context& context, const std::string& text) {
  context.out.data(text);
  context.out.json(Node::map({{"text", text}}));
  return ExitCode::done;
}

// The function or schedule of the requested name.
template <typename Part>
const Part& part_named(const std::vector<Part>& parts, const std::string& name, const char* option) {
  std::vector<std::string> names;
  for (const Part& part : parts) {
    if (part.name == name) return part;
    names.push_back(part.name);
  }
  fail(error(ErrorKind::not_found, "{}: the Program has no '{}'", option, name).hinted(nearest_hint(name, names)));
}

// The model's graph before any pass; or a function's graph after all passes.
ExitCode show_graph(const ShowOptions& options, Context& context) {
  const Planned p = planned(options, context.clock);
  if (!options.part.empty())
    return print(context, to_text(part_named(p.job.program->functions, options.part, "--function").graph));
  return print(context, to_text(p.job.model->loss({.rows = p.job.microbatch_rows, .padded = p.job.padded}, true)));
}

ExitCode show_program(const ShowOptions& options, Context& context) {
  const Planned p = planned(options, context.clock);
  return print(context, options.all ? to_text(*p.job.program) : summary_of(*p.job.program));
}

std::string waits_of(const Action& action) {
  std::string text;
  for (int wait : action.waits) text += fmt::format("{}{}", text.empty() ? "" : " ", wait);
  return text.empty() ? "-" : text;
}

std::vector<std::string> row_of(const Program& program, const Action& action, std::size_t index) {
  const Function& function = program.functions[static_cast<std::size_t>(action.function)];
  return {std::to_string(index),
          name_of(action.stream),
          function.name,
          std::to_string(action.chunk),
          std::to_string(action.microbatch),
          std::to_string(action.slot),
          waits_of(action),
          with_commas(function.work.flops),
          with_commas((function.work.read + function.work.written).count()),
          with_commas(function.scratch.count())};
}

ExitCode show_schedule(const ShowOptions& options, Context& context) {
  const Planned p = planned(options, context.clock);
  const Program& program = *p.job.program;
  std::vector<const Schedule*> chosen;
  if (!options.part.empty()) {
    chosen.push_back(&part_named(program.schedules, options.part, "--schedule"));
  } else {
    for (const Schedule& schedule : program.schedules) chosen.push_back(&schedule);
  }
  std::string text;
  for (const Schedule* schedule : chosen) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < schedule->actions.size(); ++i) rows.push_back(row_of(program, schedule->actions[i], i));
    text += fmt::format("{}schedule {}\n", text.empty() ? "" : "\n", schedule->name);
    text += table({"action>", "stream", "function", "chunk>", "microbatch>", "slot>", "waits", "FLOPs>", "moves B>",
                   "scratch B>"},
                  rows, context.out.json() ? kUnfolded : context.out.width());
  }
  return print(context, text);
}

// The training step as one module; or one of the Program's functions.
ExitCode show_stablehlo(const ShowOptions& options, Context& context) {
  const Planned p = planned(options, context.clock);
  stablehlo::LowerOptions how;
  how.unroll = options.unroll;
  if (!options.part.empty()) {
    const Function& function = part_named(p.job.program->functions, options.part, "--function");
    return print(context, stablehlo::lower(*p.job.program, function, how).text);
  }
  try {
    const Program one = fused_step(*p.job.program);
    return print(context, stablehlo::lower(one, one.function_named(kStepFunction), how).text);
  } catch (const Failure& failure) {
    std::vector<std::string> names;
    for (const Function& function : p.job.program->functions) names.push_back(function.name);
    Error told = failure.error();
    if (told.kind == ErrorKind::unsupported && told.hint.empty())
      told.hint = fmt::format("--function with one of {}", fmt::join(names, ", "));
    fail(std::move(told));
  }
}

constexpr std::int64_t kShownRows = 32, kShownColumns = 16;

// "0–7 of 16": as many as fit.
std::string topology_text(const Mesh& mesh) {
  if (mesh.trivial()) return "topology: one device\n";
  const std::vector<Axis>& axes = mesh.axes();
  const std::int64_t columns = axes.back().size, rows = mesh.num_devices() / columns;
  std::string text = fmt::format("topology: {}, mesh {}; {} along a row\n", counted(mesh.num_devices(), "rank"),
                                 to_string(mesh), axes.back().name);
  std::vector<std::vector<std::string>> cells;
  for (std::int64_t row = 0; row < std::min(rows, kShownRows); ++row) {
    const Coordinates place = mesh.coordinates(row * columns);
    std::vector<std::string> line;
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) line.push_back(std::to_string(place[a]));
    for (std::int64_t c = 0; c < std::min(columns, kShownColumns); ++c)
      line.push_back(fmt::format("rank {}", row * columns + c));
    cells.push_back(std::move(line));
  }
  std::vector<std::string> heads;
  for (std::size_t a = 0; a + 1 < axes.size(); ++a) heads.push_back(axes[a].name + ">");
  for (std::int64_t c = 0; c < std::min(columns, kShownColumns); ++c)
    heads.push_back(fmt::format("{} {}>", axes.back().name, c));
  text += table(heads, cells);
  if (rows > kShownRows || columns > kShownColumns) {
    text += fmt::format("the first {} of {}, {} of {} along each\n", std::min(rows, kShownRows), counted(rows, "row"),
                        std::min(columns, kShownColumns), columns);
  }
  return text;
}

// The mesh's devices in a grid: a row for each position on the outer axes, the innermost axis along it.
ExitCode show_topology(const ShowOptions& options, Context& context) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  return print(context, topology_text(Mesh::of(loaded.workload.mesh).value()));
}

void add(Subcommand group, Context& context, const char* name, const char* help, const char* part,
         ExitCode (*run)(const ShowOptions&, Context&), bool whole = false, bool module = false) {
  auto options = std::make_shared<ShowOptions>();
  Subcommand command = add_command(group, name, help, options, context, run);
  add_workload_arguments(command, options->workload);
  if (part != nullptr) command.add_option(part, options->part, "only this one, as the Program names it");
  if (module) command.add_flag("--unroll", options->unroll, "layers one after the other, not as a loop");
  if (whole) command.add_flag("--all", options->all, "every value, node and action");
}

}  // namespace

void add_show(Subcommand app, Context& context) {
  Subcommand group = add_group(app, "show", "a workload's graph, Program or schedules, as text");
  add(group, context, "graph", "the model's graph; with --function, a function of the Program", "--function",
      show_graph);
  add(group, context, "program", "the Program: functions, collectives, actions, memory; --all: everything", nullptr,
      show_program, true);
  add(group, context, "schedule", "the actions, in their order", "--schedule", show_schedule);
  add(group, context, "stablehlo", "the training step as XLA gets it; with --function, a function of the Program",
      "--function", show_stablehlo, false, true);
  add(group, context, "topology", "ranks and their places on the mesh's axes", nullptr, show_topology);
}

}  // namespace systole::cli
