#pragma once
// Names of files that get their own once they are whole: hidden, in the same folder, unique to a writer of a process. A
// process that is killed leaves its file there; no other one writes into it.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// "a/.b.77-7ffe01.tmp" for "a/b" and ".tmp". `writer`: anything that lives as long as the file is written.
inline std::string unfinished_name(std::string_view path, const void* writer, std::string_view ending) {
  const std::string_view folder = path.substr(0, path.rfind('/') + 1);  // with its '/'
  return fmt::format("{}.{}.{}-{:x}{}", folder, path.substr(folder.size()), ::getpid(),
                     reinterpret_cast<std::uintptr_t>(writer), ending);
}

class Store;

// Removes what killed processes left of write_whole(store, path, ...). REQUIRES: no other writer of it lives.
Status remove_unfinished(Store& store, std::string_view path);

}  // namespace systole
