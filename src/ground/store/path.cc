#include "ground/store/path.h"

namespace systole {
namespace {

Error bad_path(std::string_view path, std::string_view why) {
  return error(ErrorKind::invalid, "bad path '{}' in a store: {}", path, why)
      .hinted("a path is relative to the store's folder: names between '/', without '.' and '..'");
}

// Calls fn with each name.
template <typename Fn>
Status for_each_name(std::string_view path, std::string_view whole, const Fn& fn) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty()) return bad_path(whole, at == 0 ? "it is absolute" : "it has an empty name");
    if (name == "." || name == "..") return bad_path(whole, "it contains '.' or '..'");
    if (name.find('\0') != std::string_view::npos) return bad_path(whole, "it contains a NUL byte");
    fn(name);
    at = end + 1;
  }
  return {};
}

template <typename Fn>
Status for_each_in_file(std::string_view path, const Fn& fn) {
  if (path.empty()) return bad_path(path, "it is empty");
  return for_each_name(path, path, fn);
}

template <typename Fn>
Status for_each_in_dir(std::string_view path, const Fn& fn) {
  if (path.empty()) return {};
  const bool slash = path.size() > 1 && path.back() == '/';
  return for_each_name(slash ? path.substr(0, path.size() - 1) : path, path, fn);
}

void pass_over(std::string_view) {}

}  // namespace

Result<std::vector<std::string>> split_file_path(std::string_view path) {
  std::vector<std::string> names;
  TRY(for_each_in_file(path, [&](std::string_view name) { names.emplace_back(name); }));
  return names;
}

Result<std::vector<std::string>> split_dir_path(std::string_view path) {
  std::vector<std::string> names;
  TRY(for_each_in_dir(path, [&](std::string_view name) { names.emplace_back(name); }));
  return names;
}

Status check_file_path(std::string_view path) { return for_each_in_file(path, pass_over); }
Status check_dir_path(std::string_view path) { return for_each_in_dir(path, pass_over); }

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

}  // namespace systole
