#pragma once
// A file of results, written piece by piece, that has its name once it is whole: until then it has an unfinished_name,
// which goes away if the command fails, but not if it is killed. All functions throw Failure, that of the store.
//
//   WholeFile out("vectors.jsonl", "--out vectors.jsonl");
//   out.append(text);
//   out.finish();

#include <memory>
#include <string>
#include <string_view>

#include "ground/store/store.h"

namespace systole {

class WholeFile {
 public:
  // Replaces a file that is there, once it is finished. `hint`: what to type instead, as "--out vectors.jsonl". Errors
  // also: invalid, if the path names no file, or a folder, a device or anything else that is no file to replace.
  WholeFile(const std::string& path, const std::string& hint);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void append(std::string_view text);
  void finish();

 private:
  std::string name_, part_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<WritableFile> file_;  // null once it is whole
};

}  // namespace systole
