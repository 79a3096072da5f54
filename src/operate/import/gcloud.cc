// gcloud command lines. A line that creates machines becomes resources, and a `gcloud` section from which render --on
// gcloud recreates the line; a line that starts a job gives its program; others are only reported.
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
  void (*read)(const std::vector<ParsedFlag>&, const std::string& line, Draft&) = nullptr;  // if it creates no machines
  bool stays = false;  // left out as a whole: unknown flags are reported
};

// A remote shell: reads the command that it runs.
void read_ssh(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft) {
  const ParsedFlag* program = last_flag(seen, "command");
  for (const ParsedFlag& flag : seen)
    if (&flag != program) draft.left_out(flag.value.from, std::string(flag.why));
  if (program == nullptr) return draft.left_out(line, "it starts no program");
  read_script(program->value.text, "gcloud --command", draft);
}

constexpr std::string_view kElsewhere = "it is of what this line makes, which is made elsewhere or stays behind";
constexpr Place kPlaces[] = {
    {"compute instances create", Create::instances},
    {"compute tpus tpu-vm create", Create::tpu_vm},
    {"container node-pools create", Create::node_pool},
    {"container clusters create", Create::cluster},
    {"compute ssh", Create::nothing, read_ssh},
    {"compute tpus tpu-vm ssh", Create::nothing, read_ssh},
    {"ai custom-jobs create", Create::nothing, read_custom_job},
    {"filestore instances create", Create::nothing, read_filestore, true},
    {"billing budgets create", Create::nothing, tell_budget, true},
};

// Words before the command: gcloud beta compute ...
bool is_track(const ShellWord& word) { return word.text == "alpha" || word.text == "beta"; }

// The words without flags, which may also precede the command. The meaning of flags depends on the command, so notes
// about them are discarded here.
std::string command_of(std::span<const ShellWord> words) {
  Draft nowhere("gcloud");
  std::string command;
  for (const ShellWord& word :
       read_flags(words, {gcloud_flags(), gcloud_machine_flags()},
                  {.program = "gcloud", .words_end_them = false, .negates = true, .tells = false, .passes = kElsewhere},
                  nowhere))
    if (!command.empty() || !is_track(word)) command += (command.empty() ? "" : " ") + word.text;
  return command;
}

// Null: not supported.
const Place* place_of(std::string_view command) {
  const auto found = std::ranges::find_if(kPlaces, [&](const Place& p) { return begins(command, p.command); });
  return found == std::end(kPlaces) ? nullptr : &*found;
}

}  // namespace

bool makes_machines(std::span<const ShellWord> words) {
  const Place* place = place_of(command_of(words));
  return place != nullptr && place->create != Create::nothing && place->create != Create::cluster;
}

void read_gcloud(std::span<const ShellWord> words, bool alone, Draft& draft) {
  std::string line = "gcloud";
  for (const ShellWord& word : words) line += " " + word.raw;
  const std::string command = command_of(words);
  const Place* place = place_of(command);
  if (place == nullptr) {
    const std::string_view why = why_told(command);
    return draft.left_out(line,
                          std::string(why.empty() ? "gcloud's own: it makes no machines and starts no program" : why));
  }
  const bool beside = place->create == Create::cluster && !alone;
  const bool stays = beside || place->stays;
  std::vector<ParsedFlag> seen;
  const std::vector<ShellWord> rest = read_flags(words, {gcloud_flags(), gcloud_machine_flags()},
                                                 {.program = "gcloud",
                                                  .words_end_them = false,
                                                  .negates = true,
                                                  .seen = &seen,
                                                  .tells = false,
                                                  .passes = stays ? kElsewhere : ""},
                                                 draft);
  const auto track = std::ranges::find_if_not(rest, is_track) - rest.begin();
  const auto of_path = static_cast<std::size_t>(std::ranges::count(place->command, ' ') + 1 + track);
  if (beside) return tell_cluster(seen, draft);
  if (place->create != Create::nothing) {
    const std::span<const ShellWord> names = std::span(rest).subspan(std::min(of_path, rest.size()));
    return read_gcloud_machines(place->create, names, "gcloud " + std::string(place->command), seen, draft);
  }
  place->read(seen, line, draft);
}

}  // namespace systole
