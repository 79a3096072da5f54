// `systole import FILE`: converts jobs for sbatch, torchrun, torchx, gcloud or kubectl to a workload.

#include <unistd.h>

#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "ground/store/store.h"
#include "operate/cli/begin.h"
#include "operate/import/import.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

struct ImportOptions {
  std::string file, out;
};

ImportSource source_of(const std::string& file) {
  if (file == "-") return {read_text_from(STDIN_FILENO, "standard input").value(), "standard input"};
  ImportSource source{read_text_file(file).value(), file};
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  source.beside = [folder](const std::string& name) { return read_text_file((folder / name).string()); };
  return source;
}

ExitCode import(const ImportOptions& options, Context& context) {
  namespace fs = std::filesystem;
  if (!options.out.empty() && path_exists(options.out))
    fail(error(ErrorKind::exists, "{} is there already", options.out).hinted("--out ANOTHER"));
  const Imported made = import_job(source_of(options.file)).value();
  Node left_out = Node::sequence();
  for (const LeftOut& out : made.left_out) {
    context.out.warning(fmt::format("not carried over: {}: {}", out.what, out.why));
    left_out.push(Node::map({{"what", out.what}, {"why", out.why}}));
  }
  Node notes = Node::sequence();
  for (const LeftOut& note : made.notes) {
    context.out.message(fmt::format("carried over: {}: {}", note.what, note.why));
    notes.push(Node::map({{"what", note.what}, {"why", note.why}}));
  }
  if (!made.missing.empty()) context.out.warning("missing: " + made.missing);
  Node document = Node::map({{"workload", made.yaml}, {"left_out", left_out}, {"notes", notes}});
  if (!made.missing.empty()) document.set("missing", made.missing);
  context.out.json(document);
  if (options.out.empty()) {
    context.out.data(made.yaml);
    context.out.message("next: the same with --out job.yaml, and systole check job.yaml");
    return ExitCode::done;
  }
  const fs::path place = absolute_path(options.out).value();
  const std::unique_ptr<Store> store = open_posix_store(place.parent_path().string()).value();
  write_whole(*store, place.filename().string(), made.yaml).value();
  context.out.data("written: " + options.out);
  context.out.message("next: systole check " + shell_word(options.out));
  if (!made.missing.empty()) context.out.message("then: systole render " + shell_word(options.out) + " --on gcloud");
  return ExitCode::done;
}

}  // namespace

void add_import(Subcommand app, Context& context) {
  auto options = std::make_shared<ImportOptions>();
  Subcommand command = add_command(
      app, "import", "make a workload of an sbatch script, a launcher's line or a manifest", options, context, import);
  command.add_option("file", options->file, "the script, line or manifest; - is standard input").required();
  command.add_option("--out", options->out, "the workload's file; without: it is printed");
}

}  // namespace systole::cli
