#include "ground/store/object_files.h"

namespace systole {

Result<ObjectFacts> ObjectFiles::facts(std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = seen_.find(path); found != seen_.end()) return found->second;
  return seen_.emplace(std::string(path), TRY(describe_object(objects_, path))).first->second;
}

Status ObjectFiles::read(std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  const ObjectFacts version = TRY(facts(path));
  if (offset + static_cast<std::int64_t>(into.size()) > version.size.count())
    return error(ErrorKind::corrupt, "'{}' ends at byte {}", path, version.size.count());
  if (into.empty()) return {};
  return get_version(objects_, path, version.generation, offset, into);
}

Result<Bytes> ObjectFiles::size(std::string_view path) { return TRY(facts(path)).size; }

Result<bool> ObjectFiles::exists(std::string_view path) { return has_object(objects_, path); }

Result<std::vector<std::string>> ObjectFiles::list(std::string_view dir) {
  const std::string prefix = dir.empty() ? "" : fmt::format("{}/", dir);
  const ObjectList found = TRY(objects_.list(prefix, ListDepth::one_level));
  std::vector<std::string> names = found.prefixes;
  for (const ObjectEntry& object : found.objects) names.push_back(object.path);
  for (std::string& name : names) name.erase(0, prefix.size());
  return names;
}

}  // namespace systole
