#pragma once
// Names of files that get their own once they are whole: hidden, in the same folder, unique to a writer. A process that
// is killed leaves its file there; no other one writes into it.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// "77-5f3a09c1-3": another one at each call, in all processes and on all machines that share a file system. Thread-safe.
std::string writer_name();

// "a/.b.77-5f3a09c1-3.tmp" for "a/b" and ".tmp"; another one at each call.
std::string unfinished_name(std::string_view path, std::string_view ending);

class Store;

// Removes what killed processes left of write_whole(store, path, ...). REQUIRES: no other writer of it lives.
Status remove_unfinished(Store& store, std::string_view path);

}  // namespace systole
