// `systole reference DIR`: writes the pages of docs/reference.

#include "ground/store/store.h"
#include "operate/cli/command.h"
#include "operate/cli/reference_pages.h"

namespace systole::cli {
namespace {

struct ReferenceOptions {
  std::string folder;
};

ExitCode write_reference(const ReferenceOptions& options, Context& context) {
  const std::unique_ptr<Store> store = open_posix_store(options.folder).value();
  for (const ReferencePage& page : reference_pages()) {
    if (const std::size_t slash = page.file.rfind('/'); slash != page.file.npos)
      make_dirs_synced(*store, page.file.substr(0, slash)).value();
    write_whole(*store, page.file, page.text).value();
    context.out.message(options.folder + "/" + page.file);
  }
  return ExitCode::done;
}

}  // namespace

void add_reference(Subcommand app, Context& context) {
  auto options = std::make_shared<ReferenceOptions>();
  Subcommand command =
      add_command(app, "reference", "write the pages of docs/reference", options, context, write_reference);
  command.add_option("folder", options->folder, "where to").required();
  command.hidden();
}

}  // namespace systole::cli
