#pragma once
// A file of results, written piece by piece, that has its name once it is whole: until then it is NAME.part, which goes
// away if the command fails.
//
//   WholeFile out("vectors.jsonl");
//   out.append(text);
//   out.finish();

#include <memory>
#include <string>

#include "ground/store/store.h"

namespace systole::cli {

// All functions throw Failure: that of the store; invalid: the path names a folder or a device.
class WholeFile {
 public:
  // Replaces a file that is there, once it is finished.
  explicit WholeFile(const std::string& path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void append(const std::string& text);
  void finish();

 private:
  std::string name_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<WritableFile> file_;  // null once it is whole
};

}  // namespace systole::cli
