#include "execute/checkpoint/folder.h"

#include <algorithm>

#include "ground/base/number_from.h"

namespace systole::checkpoint {

namespace {
constexpr std::string_view kManifestSuffix = ".json", kBlessedSuffix = ".blessed";
constexpr std::size_t kStepDigits = 12;

std::optional<std::int64_t> step_with_suffix(std::string_view leaf, std::string_view suffix) {
  if (!leaf.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = leaf.substr(0, leaf.size() - suffix.size());
  const std::optional<std::int64_t> step = number_from(digits);
  return digits.size() >= kStepDigits && step && *step >= 0 ? step : std::nullopt;
}

Result<std::vector<std::int64_t>> steps_with_suffix(const Folder& folder, std::string_view suffix) {
  std::vector<std::int64_t> steps;
  for (const std::string& leaf : TRY(names_under(folder, folder.manifests()))) {
    if (const auto step = step_with_suffix(leaf, suffix)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}
}  // namespace

std::string Folder::at(std::string_view path) const {
  return dir.empty() ? std::string(path) : fmt::format("{}/{}", dir, path);
}
std::string Folder::chunk(std::string_view hash) const { return fmt::format("{}/{}", chunks(), hash); }
std::string Folder::manifest(std::int64_t step) const {
  return fmt::format("{}/{:012}{}", manifests(), step, kManifestSuffix);
}
std::string Folder::blessing(std::int64_t step) const {
  return fmt::format("{}/{:012}{}", manifests(), step, kBlessedSuffix);
}
std::string Folder::parts_of(std::string_view save) const { return fmt::format("{}/{}", parts(), save); }
std::string Folder::begun(std::string_view save, int rank) const {
  return fmt::format("{}/begun-{}", parts_of(save), rank);
}
std::string Folder::part(std::string_view save, int rank) const {
  return fmt::format("{}/part-{}.json", parts_of(save), rank);
}
std::string Folder::outcome(std::string_view save) const { return fmt::format("{}/outcome.json", parts_of(save)); }

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::vector<std::int64_t>> list_steps(const Folder& folder) {
  return steps_with_suffix(folder, kManifestSuffix);
}
Result<std::vector<std::int64_t>> list_blessed(const Folder& folder) {
  return steps_with_suffix(folder, kBlessedSuffix);
}

Status prepare(const Folder& folder) {
  TRY(folder.store->make_folder(folder.chunks()));
  TRY(folder.store->make_folder(folder.manifests()));
  return folder.store->settle(folder.dir);
}

Result<std::vector<std::string>> names_under(const Folder& folder, std::string_view dir) {
  const std::string prefix = fmt::format("{}/", dir);
  ObjectList listed = TRY(folder.store->list(prefix, ListDepth::one_level));
  std::vector<std::string> names = std::move(listed.prefixes);
  for (ObjectEntry& object : listed.objects) names.push_back(std::move(object.path));
  for (std::string& name : names) name.erase(0, prefix.size());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace systole::checkpoint
