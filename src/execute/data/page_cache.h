#pragma once
// The system's cache of a file's pages: to measure what a first read takes.

#include <string>

namespace systole {

// Drops the pages of a file that need not be written back. True: none is left, so that the next read comes from the
// storage. False: the file system keeps them (tmpfs), another program holds them, or the file cannot be looked at.
bool drop_cached_pages(const std::string& path);

}  // namespace systole
