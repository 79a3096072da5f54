#include "ground/store/git_lfs.h"

#include <charconv>

#include "ground/base/units.h"

namespace systole {
namespace {

constexpr Bytes kLargestPointer(1024);  // the specification's bound

// The size of the real file; empty if the pointer does not state it.
std::string size_told(std::string_view pointer) {
  constexpr std::string_view kSize = "\nsize ";
  const std::size_t at = pointer.find(kSize);
  std::int64_t size = 0;
  if (at == pointer.npos) return "";
  const char* begin = pointer.data() + at + kSize.size();
  if (std::from_chars(begin, pointer.data() + pointer.size(), size).ec != std::errc()) return "";
  return fmt::format(" of {}", to_string(Bytes(size)));
}

}  // namespace

Status refuse_lfs_pointer(Store& store, std::string_view path) {
  if (TRY(store.size(path)) > kLargestPointer) return {};
  const std::string text = TRY(read_text(store, path, kLargestPointer));
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return {};
  return error(ErrorKind::invalid, "this is a pointer of git-lfs, and the file itself{} was not fetched",
               size_told(text))
      .at({std::string(path)})
      .hinted("in its repository: git lfs pull");
}

}  // namespace systole
