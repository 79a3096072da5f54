// `systole show graph | program | schedule WORKLOAD`: what will run, as text.

#include "describe/graph/text.h"
#include "ground/base/nearest.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {
namespace {

struct ShowOptions {
  WorkloadArguments workload;
  std::string part;  // a function, or a schedule
};

struct Planned {
  Machine machine;
  Job job;
};

Planned planned(const ShowOptions& options, Clock& clock) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  check_threads(options.workload.backend, loaded.workload.resources, loaded.source).value();
  Planned result{open_machine(options.workload.backend, loaded.workload.resources, clock).value(), {}};
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

// The part that was asked for by name, of functions or schedules.
template <typename Part>
const Part& part_named(const std::vector<Part>& parts, const std::string& name, const char* option) {
  std::vector<std::string> names;
  for (const Part& part : parts) {
    if (part.name == name) return part;
    names.push_back(part.name);
  }
  fail(error(ErrorKind::not_found, "{}: the Program has no '{}'", option, name).hinted(nearest_hint(name, names)));
}

// The graph that the model builds, before any pass; or that of a function of the Program, after all of them.
ExitCode show_graph(const ShowOptions& options, Context& context) {
  const Planned p = planned(options, context.clock);
  if (!options.part.empty())
    return print(context, to_text(part_named(p.job.program->functions, options.part, "--function").graph));
  const BatchShape shape{p.job.microbatch_rows, std::max<std::int64_t>(1, p.job.model->context())};
  return print(context, to_text(p.job.model->loss(shape, true)));
}

ExitCode show_program(const ShowOptions& options, Context& context) {
  return print(context, to_text(*planned(options, context.clock).job.program));
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
    text += table(
        {"action>", "stream", "function", "chunk>", "microbatch>", "waits", "FLOPs>", "moves B>", "scratch B>"}, rows);
  }
  return print(context, text);
}

void add(CLI::App& group, Context& context, const char* name, const char* help, const char* part,
         ExitCode (*run)(const ShowOptions&, Context&)) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App& command = add_command(group, name, help, options, context, run);
  add_workload_arguments(command, options->workload);
  if (part != nullptr) command.add_option(part, options->part, "only this one, as the Program names it");
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  CLI::App& group = add_group(app, "show", "a workload's graph, Program or schedules, as text");
  add(group, context, "graph", "the model's graph; with --function, a function of the Program", "--function",
      show_graph);
  add(group, context, "program", "the Program: functions, actions, memory", nullptr, show_program);
  add(group, context, "schedule", "the actions, in their order", "--schedule", show_schedule);
}

}  // namespace systole::cli
