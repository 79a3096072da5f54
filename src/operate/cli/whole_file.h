#pragma once
// A file that a command writes, which has its name once it is whole: until then it is FILE.part, which goes with the
// object. Each call fails with the error of the store.

#include <memory>
#include <string>
#include <string_view>

#include "ground/store/store.h"

namespace systole::cli {

class WholeFile {
 public:
  // `hint`: what to type instead, as "--out vectors.jsonl". Errors: invalid, if the path names no file, or a folder, a
  // device or anything else that is no file to replace; as open_posix_store and Store::create.
  WholeFile(const std::string& path, const std::string& hint);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void append(std::string_view text);
  void finish();

 private:
  std::string name_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<WritableFile> file_;  // null once it is whole
};

}  // namespace systole::cli
