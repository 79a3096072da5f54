#include "operate/import/mounts.h"

#include <algorithm>

#include "operate/import/variables.h"
#include "operate/import/wrappers.h"

namespace systole {
namespace {

std::span<const ShellWord> without_sudo(std::span<const ShellWord> words) {
  return !words.empty() && program_name(words[0]) == "sudo" ? words.subspan(1) : words;
}

// What `volumes` takes.
bool is_plain(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._/:,-").find(c) != std::string_view::npos;
  });
}

// "-r", or "ro" among the options behind -o.
bool is_read_only(std::span<const ShellWord> words) {
  return std::ranges::any_of(words, [](const ShellWord& word) {
    return word.text == "-r" || word.text == "--read-only" || ("," + word.text + ",").find(",ro,") != std::string::npos;
  });
}

}  // namespace

bool is_mount(std::span<const ShellWord> words) {
  const std::span<const ShellWord> line = without_sudo(words);
  if (line.empty()) return false;
  const std::string name = program_name(line[0]);
  return name == "mount" || name == "gcsfuse";
}

void read_mount(std::span<const ShellWord> words, Draft& draft) {
  const std::span<const ShellWord> line = without_sudo(words);
  std::string from;
  for (const ShellWord& word : line) from += (from.empty() ? "" : " ") + word.raw;
  if (line.size() < 3) return draft.left_out(from, "it names no folder: volumes says what is mounted where");
  const ShellWord what = with_variables(line[line.size() - 2], draft), where = with_variables(line.back(), draft);
  std::string path = where.text;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (what.expands || where.expands || path.size() < 2 || path[0] != '/' || !is_plain(path) || !is_plain(what.text))
    return draft.left_out(from, "what and where that is does not stand here: volumes says it");
  const bool bucket = program_name(line[0]) == "gcsfuse";
  if (!bucket && what.text.find(":/") == what.text.npos)
    return draft.left_out(from, "a disk of one machine; volumes has hyperdisk and local_ssd");
  std::vector<Draft::VolumeKey> volume = {{bucket ? "bucket" : "nfs", what.text, from}};
  if (is_read_only(line.subspan(1, line.size() - 3))) volume.push_back({"read_only", true, from});
  draft.set_volume(path, volume);
}

}  // namespace systole
