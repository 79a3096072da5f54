// `systole render WORKLOAD --on TARGET`: the files by which a cluster starts a workload, into a folder.

#include "operate/render/render.h"

#include <filesystem>

#include "ground/store/sha256.h"
#include "ground/store/store.h"
#include "operate/cli/held_plan.h"
#include "operate/cli/version.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {
namespace {

struct RenderOptions {
  WorkloadArguments workload;
  std::string on, plan, out, run;
  bool dry_run = false;
};

Carried carried(std::string text) {
  std::string sha256 = sha256_of(text);
  return {std::move(text), std::move(sha256)};
}

Workload workload_of(const RenderOptions& options, std::optional<Plan>& plan) {
  if (options.plan.empty()) {
    if (options.workload.path.empty())
      fail(error(ErrorKind::invalid, "render what?").hinted("systole render JOB.yaml --on slurm"));
    return load_workload(options.workload).value().workload;
  }
  plan = plan_in(options.plan).value();
  return plan->workload;
}

void write(const RenderedFile& file, const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / file.path;
  std::filesystem::create_directories(path.parent_path());
  const std::unique_ptr<Store> store = open_posix_store(path.parent_path().string()).value();
  write_whole(*store, path.filename().string(), file.text).value();
}

ExitCode render(const RenderOptions& options, Context& context) {
  std::optional<Plan> plan;
  const Workload workload = workload_of(options, plan);
  RenderAsk ask{.target = render_target_named(options.on).value(), .workload = workload};
  ask.workload_file = carried(to_yaml(workload));
  if (plan) {
    ask.plan = &*plan;
    ask.plan_file = carried(to_json(*plan) + "\n");
  }
  ask.program_sha256 = sha256_of_file("/proc/self/exe").value();
  ask.version = kVersion;
  ask.run = options.run;
  ask.place = options.out.empty() ? fmt::format("rendered/{}", name_of(ask.target)) : options.out;
  const Rendered rendered = systole::render(ask).value();
  Node files;
  for (const RenderedFile& file : rendered.files) {
    if (!options.dry_run) write(file, ask.place);
    if (options.dry_run) context.out.data(fmt::format("==> {}\n{}", file.path, file.text));
    files.push(Node::map({{"path", file.path}, {"sha256", sha256_of(file.text)}}));
  }
  for (const std::string& warning : rendered.warnings) context.out.warning(warning);
  if (!options.dry_run) context.out.data(fmt::format("written: {} files in {}", rendered.files.size(), ask.place));
  Node commands;
  for (const auto& [what, line] : rendered.commands) {
    context.out.message(fmt::format("{:<6} {}", what + ":", line));
    commands.set(what, line);
  }
  context.out.json(Node::map({{"run", rendered.run}, {"folder", ask.place}, {"files", files}, {"commands", commands}}));
  return ExitCode::done;
}

}  // namespace

void add_render(CLI::App& app, Context& context) {
  auto options = std::make_shared<RenderOptions>();
  CLI::App& command =
      add_command(app, "render", "write the files by which a cluster starts a workload", options, context, render);
  options->workload.command = true;
  CLI::Option* workload = command.add_option("workload", options->workload.path, "the workload's YAML file");
  CLI::Option* plan = command.add_option("--plan", options->plan,
                                         "what a plan says: plan.json of `systole plan --out`, in place of a workload");
  plan->excludes(workload);
  plan->excludes(
      command.add_option("--env", options->workload.environment, "lay this environment of the workload over it"));
  plan->excludes(
      command.add_option("--set", options->workload.sets, "lay KEY=VALUE over the workload; may be repeated")
          ->take_all());
  std::vector<std::string> targets;
  for (const RenderTarget target : render_targets()) targets.emplace_back(name_of(target));
  command.add_option("--on", options->on, fmt::format("where: {}", fmt::join(targets, ", ")))->required();
  command.add_option("--out", options->out, "the folder; without: rendered/TARGET");
  command.add_option("--run", options->run, "what the run is called there; without: as the workload");
  command.add_flag("--dry-run", options->dry_run, "print the files, write none");
}

}  // namespace systole::cli
