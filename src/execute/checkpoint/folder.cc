#include "execute/checkpoint/folder.h"

#include <algorithm>
#include <charconv>

#include "ground/store/path.h"

namespace systole::checkpoint {

namespace {
constexpr std::string_view kManifestSuffix = ".json", kBlessedSuffix = ".blessed";
constexpr std::size_t kStepDigits = 12;

std::optional<std::int64_t> step_with_suffix(std::string_view leaf, std::string_view suffix) {
  if (!leaf.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = leaf.substr(0, leaf.size() - suffix.size());
  std::int64_t step = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (digits.size() < kStepDigits || problem != std::errc() || end != digits.data() + digits.size() || step < 0) {
    return std::nullopt;
  }
  return step;
}

Result<std::vector<std::int64_t>> steps_with_suffix(const Folder& folder, std::string_view suffix) {
  std::vector<std::int64_t> steps;
  for (const std::string& leaf : TRY(list_or_empty(*folder.store, folder.manifests()))) {
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
std::string Folder::part(std::string_view save, int rank) const {
  return fmt::format("{}/part-{}.json", parts_of(save), rank);
}
std::string Folder::outcome(std::string_view save) const { return fmt::format("{}/outcome.json", parts_of(save)); }

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::int64_t> step_of(std::string_view leaf) { return step_with_suffix(leaf, kManifestSuffix); }

Result<std::vector<std::int64_t>> list_steps(const Folder& folder) {
  return steps_with_suffix(folder, kManifestSuffix);
}
Result<std::vector<std::int64_t>> list_blessed(const Folder& folder) {
  return steps_with_suffix(folder, kBlessedSuffix);
}

Status put_whole(const Folder& folder, const std::string& path, std::string_view writer, std::string_view text,
                 const std::function<Status()>& before_rename) {
  const std::string temporary = fmt::format("{}.{}{}", path, writer, kTemporary);
  TRY(folder.store->remove(temporary));  // a fresh file: see write_chunks.cc
  auto file = TRY(folder.store->create(temporary));
  TRY(file->append(std::as_bytes(std::span(text))));
  TRY(file->sync());
  TRY(file->close());
  if (before_rename) TRY(before_rename());
  TRY(folder.store->rename(temporary, path));
  return folder.store->sync_dir(parent_of(path));
}

Status prepare(const Folder& folder) {
  TRY(folder.store->make_dirs(folder.chunks()));
  TRY(folder.store->make_dirs(folder.manifests()));
  // The names of the folders themselves: each lies in its parent.
  std::string_view dir = folder.dir;
  while (true) {
    TRY(folder.store->sync_dir(dir));
    if (dir.empty()) return {};
    const std::size_t slash = dir.rfind('/');
    dir = slash == std::string_view::npos ? std::string_view() : dir.substr(0, slash);
  }
}

Result<std::vector<std::string>> list_or_empty(Store& store, std::string_view dir) {
  auto names = store.list(dir);
  if (!names && names.error().kind == ErrorKind::not_found) return std::vector<std::string>();
  return names;
}

}  // namespace systole::checkpoint
