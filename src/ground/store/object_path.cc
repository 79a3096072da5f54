#include "ground/store/object_path.h"

#include "ground/store/path.h"

namespace systole {

bool is_own_name(std::string_view leaf) { return leaf.starts_with(kOwnName); }

Status check_object_path(std::string_view path) {
  TRY(split_file_path(path));
  const std::size_t slash = path.rfind('/');
  if (!is_own_name(slash == path.npos ? path : path.substr(slash + 1))) return {};
  return error(ErrorKind::invalid, "bad path '{}' in a store: names that begin with '{}' are its own", path, kOwnName);
}

void keep_paths(ObjectList& list) {
  std::erase_if(list.objects, [&](const ObjectEntry& object) {
    if (check_object_path(object.path).ok()) return false;
    const bool is_own = is_own_name(std::string_view(object.path).substr(object.path.rfind('/') + 1));
    const bool is_folder = object.size == Bytes() && (object.path.empty() || object.path.ends_with('/'));
    if (!is_own && !is_folder && list.left_out++ == 0) list.left_out_name = object.path;
    return true;
  });
}

Result<std::string_view> folder_of_prefix(std::string_view prefix) {
  TRY(split_dir_path(prefix));
  return prefix.ends_with('/') ? prefix.substr(0, prefix.size() - 1) : prefix;
}

}  // namespace systole
