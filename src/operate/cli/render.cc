// `systole render WORKLOAD --on TARGET`: writes the files that start a workload on a cluster.

#include "operate/render/render.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "operate/cli/command.h"

#include <fmt/ranges.h>

#include "ground/store/sha256.h"
#include "operate/cli/rendering.h"
#include "operate/run/rendered_folder.h"

namespace systole::cli {
namespace {

struct RenderOptions {
  RenderArguments job;
  std::string out;
  bool dry_run = false, mermaid = false, replace = false;
};

ExitCode render(const RenderOptions& given, Context& context) {
  RenderOptions options = given;
  settle_target(options.job, "render");
  const std::string place = options.out.empty() ? "rendered/" + options.job.on : options.out;
  const RenderedJob job = render_job(options.job, "render", [&](const std::string&) { return place; });
  const Rendered& rendered = job.rendered;
  if (options.mermaid) {
    if (rendered.drawing.empty())
      fail(error(ErrorKind::unsupported, "--mermaid: {} has nothing to draw", options.job.on).hinted("--on a cluster"));
    context.out.data(rendered.drawing);
    context.out.json(Node::map({{"run", rendered.run}, {"mermaid", rendered.drawing}}));
    return ExitCode::done;
  }
  if (!options.dry_run) {
    const WrittenFiles written = write_rendered(rendered, place, options.replace).value();
    if (!written.replaced.empty()) context.out.message(fmt::format("replaced: {}", fmt::join(written.replaced, ", ")));
    if (!written.removed.empty())
      context.out.message(fmt::format("removed: {}, of the files before", fmt::join(written.removed, ", ")));
  }
  Node files;
  for (const RenderedFile& file : rendered.files) {
    if (options.dry_run) context.out.data(fmt::format("==> {}\n{}", file.path, file.text));
    files.push(Node::map({{"path", file.path}, {"sha256", sha256_of(file.text)}}));
  }
  for (const std::string& line : job.storage) context.out.message(line);
  for (const std::string& warning : rendered.warnings) context.out.warning(warning);
  if (!options.dry_run)
    context.out.data(fmt::format("written: {} in {}", counted(rendered.files.size(), "file"), place));
  Node commands;
  for (const auto& [what, line] : rendered.commands) {
    context.out.message(fmt::format("{:<6} {}", what + ":", line));
    commands.set(what, line);
  }
  Node document = Node::map({{"run", rendered.run}, {"folder", place}, {"files", files}, {"commands", commands}});
  for (const std::string& line : job.storage) document.set("storage", line);
  if (rendered.cost) {
    for (const std::string& line : cost_lines(*rendered.cost)) context.out.message("cost:   " + line);
    document.set("cost", cost_node(*rendered.cost));
  }
  if (rendered.cost || !rendered.quotas.empty()) {
    for (const std::string& line : quota_lines(rendered.quotas, rendered.region))
      context.out.message("quota:  " + line);
    document.set("quotas", quota_node(rendered.quotas, rendered.region));
  }
  context.out.json(document);
  return ExitCode::done;
}

}  // namespace

void add_render(Subcommand app, Context& context) {
  auto options = std::make_shared<RenderOptions>();
  Subcommand command =
      add_command(app, "render", "write the files by which a cluster starts a workload", options, context, render);
  add_render_arguments(command, options->job, job_target_names());
  add_image_arguments(command, options->job);
  command.add_option("--out", options->out, "the folder; without: rendered/TARGET");
  command.add_flag("--replace", options->replace, "write over what is there: files of another run, edited ones");
  Option dry = command.add_flag("--dry-run", options->dry_run, "print the files, write none");
  command.add_flag("--mermaid", options->mermaid, "draw it, as text of Mermaid; write no files").excludes(dry);
}

}  // namespace systole::cli
