// Lines of gcloud. One that makes machines says them as resources, and the rest of it as `gcloud`, of which render
// --on gcloud writes the line again; one that starts a job says its program; others are told.
#include <algorithm>

#include "operate/import/gcloud_filestore.h"
#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_jobs.h"
#include "operate/import/gcloud_machines.h"
#include "operate/import/gcloud_told.h"
#include "operate/import/launchers.h"
#include "operate/import/script.h"

namespace systole {
namespace {

using Create = GcloudSpec::Create;

struct Place {
  std::string_view command;
  Create create = Create::nothing;
};
constexpr std::string_view kElsewhere = "it is of what this line makes, which is made elsewhere or stays behind";
constexpr Place kPlaces[] = {
    {"compute instances create", Create::instances},
    {"compute tpus tpu-vm create", Create::tpu_vm},
    {"container node-pools create", Create::node_pool},
    {"container clusters create", Create::cluster},
    {"compute ssh"},
    {"compute tpus tpu-vm ssh"},
    {"ai custom-jobs create"},
    {"filestore instances create"},
    {"billing budgets create"},
};

}  // namespace

bool makes_machines(std::span<const ShellWord> words) {
  std::string command;
  for (const ShellWord& word : words) {
    if (word.text.starts_with('-')) break;
    if (word.text != "alpha" && word.text != "beta") command += (command.empty() ? "" : " ") + word.text;
  }
  return std::ranges::any_of(kPlaces, [&](const Place& p) {
    return p.create != Create::nothing && p.create != Create::cluster && command.starts_with(p.command);
  });
}

void read_gcloud(std::span<const ShellWord> words, bool alone, Draft& draft) {
  std::string command, line = "gcloud";
  std::size_t early = 0;
  bool path = true;
  for (const ShellWord& word : words) {
    line += " " + word.raw;
    path = path && !word.text.starts_with('-');
    if (path && command.empty() && (word.text == "alpha" || word.text == "beta"))
      ++early;
    else if (path)
      command += (command.empty() ? "" : " ") + word.text;
  }
  const auto place = std::ranges::find_if(kPlaces, [&](const Place& p) { return command.starts_with(p.command); });
  if (place == std::end(kPlaces)) {
    const std::string_view why = why_told(command);
    return draft.left_out(line,
                          std::string(why.empty() ? "gcloud's own: it makes no machines and starts no program" : why));
  }
  const bool beside = place->create == Create::cluster && !alone;
  const bool stays = beside || place->command.starts_with("filestore ") || place->command.starts_with("billing ");
  std::vector<SeenFlag> seen;
  const std::vector<ShellWord> rest = read_flags(
      words, {gcloud_flags()},
      {.program = "gcloud", .words_end_them = false, .seen = &seen, .tells = false, .passes = stays ? kElsewhere : ""},
      draft);
  const auto of_path = static_cast<std::size_t>(std::ranges::count(place->command, ' ')) + 1 + early;
  if (beside) return tell_cluster(seen, draft);
  if (place->create != Create::nothing) {
    const std::span<const ShellWord> names = std::span(rest).subspan(std::min(of_path, rest.size()));
    return read_gcloud_machines(place->create, names, "gcloud " + std::string(place->command), seen, draft);
  }
  if (place->command.starts_with("ai ")) return read_custom_job(seen, line, draft);
  if (place->command.starts_with("filestore ")) return read_filestore(seen, line, draft);
  if (place->command.starts_with("billing ")) return tell_budget(seen, draft);
  // A shell on a machine: what it is told to run.
  const SeenFlag* program = last_flag(seen, "command");
  for (const SeenFlag& flag : seen)
    if (&flag != program) draft.left_out(flag.value.from, std::string(flag.why));
  if (program == nullptr) return draft.left_out(line, "it starts no program");
  read_script(program->value.text, "gcloud --command", draft);
}

}  // namespace systole
