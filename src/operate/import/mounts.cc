#include "operate/import/mounts.h"

#include <algorithm>

#include "operate/import/flags.h"
#include "operate/import/variables.h"
#include "operate/import/wrappers.h"

namespace systole {
namespace {

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kPerhaps = Flag::Takes::perhaps;

// Flags of mount(8). Those without a reason are read below, or a volume does not need them.
constexpr Flag kFlags[] = {
    {"types", 't'},
    {"options", 'o'},
    {"source"},
    {"target"},
    {"label", 'L'},
    {"uuid", 'U'},
    {"test-opts", 'O'},
    {"namespace", 'N'},
    {"fstab", 'T'},
    {"all", 'a', kNothing},
    {"read-only", 'r', kNothing},
    {"bind", 'B', kNothing},
    {"rbind", 'R', kNothing},
    {"move", 'M', kNothing},
    {"verbose", 'v', kNothing},
    {"no-mtab", 'n', kNothing},
    {"rw", 'w', kNothing},
    {"read-write", '\0', kNothing},
    {"mkdir", 'm', kPerhaps},
    // Flags of gcsfuse.
    {"implicit-dirs", '\0', kPerhaps},
    {"only-dir", '\0', Flag::Takes::value, nullptr, "a bucket of volumes is mounted whole"},
    {"key-file"},
    {"uid"},
    {"gid"},
    {"file-mode"},
    {"dir-mode"},
};

// Whether `volumes` accepts it.
bool is_plain(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._/:,-").find(c) != std::string_view::npos;
  });
}

// Whether a flag has one of the names, or an item after -o does.
bool says(const std::vector<ParsedFlag>& seen, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(seen, [&](const ParsedFlag& flag) {
    return std::ranges::any_of(names, [&](std::string_view name) {
      const std::string item = "," + std::string(name) + ",";
      return flag.name == name ||
             (flag.name == "options" && ("," + flag.value.text + ",").find(item) != std::string::npos);
    });
  });
}

// Source and mount point: by flag or by position.
std::vector<ShellWord> places_of(std::vector<ShellWord> operands, const std::vector<ParsedFlag>& seen) {
  for (const ParsedFlag& flag : seen) {
    const ShellWord word{flag.value.text, flag.value.text, flag.expands};
    if (flag.name == "source" || flag.name == "label" || flag.name == "uuid") operands.insert(operands.begin(), word);
    if (flag.name == "target") operands.push_back(word);
  }
  return operands;
}

}  // namespace

bool is_mount(std::span<const ShellWord> words) {
  if (words.empty()) return false;
  const std::string name = program_name(words[0]);
  return name == "mount" || name == "gcsfuse";
}

void read_mount(std::span<const ShellWord> line, Draft& draft) {
  std::string from;
  for (const ShellWord& word : line) from += (from.empty() ? "" : " ") + word.raw;
  const bool bucket = program_name(line[0]) == "gcsfuse";
  std::vector<ParsedFlag> seen;
  const std::vector<ShellWord> places =
      places_of(read_flags(line.subspan(1), {kFlags},
                           {.program = bucket ? "gcsfuse" : "mount",
                            .words_end_them = false,
                            .seen = &seen,
                            .passes = "volumes says what is mounted where, and not how"},
                           draft),
                seen);
  if (places.size() < 2) return draft.left_out(from, "it names no folder: volumes says what is mounted where");
  const ShellWord what = with_variables(places[places.size() - 2], draft), where = with_variables(places.back(), draft);
  std::string path = where.text;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (what.expands || where.expands || path.size() < 2 || path[0] != '/' || !is_plain(path) || !is_plain(what.text))
    return draft.left_out(from, "what and where that is does not stand here: volumes says it");
  if (says(seen, {"bind", "rbind", "move"}))
    return draft.left_out(from, "a folder of one machine at a second place: write that place in volumes");
  if (!bucket && what.text.find(":/") == what.text.npos)
    return draft.left_out(from, "a disk of one machine; volumes has hyperdisk and local_ssd");
  std::vector<Draft::VolumeKey> volume = {{bucket ? "bucket" : "nfs", what.text, from}};
  if (says(seen, {"read-only", "ro"})) volume.push_back({"read_only", true, from});
  draft.set_volume(path, volume);
}

}  // namespace systole
