// `systole init [FOLDER] --pattern PLACE`: a first workload for a kind of place, to begin with.

#include <filesystem>

#include "ground/base/files.h"
#include "ground/store/store.h"
#include "operate/cli/begin.h"
#include "operate/import/pattern.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

struct InitOptions {
  std::string folder = ".", pattern = "local", name;
};

ExitCode init(const InitOptions& options, Context& context) {
  namespace fs = std::filesystem;
  const Pattern pattern = pattern_named(options.pattern).value();
  const fs::path folder = absolute_path(options.folder).value();
  const std::string name = options.name.empty() ? "first" : options.name;
  const std::string text = first_workload(pattern, name).value();
  const std::string file = dns_label(name, 48, "a file").value() + ".yaml";
  const std::string path = (fs::path(options.folder) / file).lexically_normal().string();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) fail(error(ErrorKind::io, "{}: {}", options.folder, failed.message()).hinted("another FOLDER"));
  if (path_exists(folder / file))
    fail(error(ErrorKind::exists, "{} is there already", path).hinted("--name ANOTHER, or another FOLDER"));
  const std::unique_ptr<Store> store = open_posix_store(folder.string()).value();
  write_whole(*store, file, text).value();
  const std::string word = shell_word(path), target = target_of(pattern);
  context.out.data("written: " + path);
  context.out.message("next: systole check " + word);
  const std::string then = target.empty() ? "systole run " + word : "systole render " + word + " --on " + target;
  context.out.message("then: " + then);
  context.out.json(Node::map({{"file", path}, {"pattern", name_of(pattern)}, {"then", then}}));
  return ExitCode::done;
}

}  // namespace

void add_init(Subcommand app, Context& context) {
  auto options = std::make_shared<InitOptions>();
  Subcommand command = add_command(app, "init", "write a first workload", options, context, init);
  command.add_option("folder", options->folder, "where; without: here");
  std::vector<std::string> names;
  for (const Pattern pattern : patterns()) names.emplace_back(name_of(pattern));
  command.add_option("--pattern", options->pattern,
                     fmt::format("for which place: {}; without: local", fmt::join(names, ", ")));
  command.add_option("--name", options->name, "what it is called, and its file; without: first");
}

}  // namespace systole::cli
