#pragma once
// The folder, and so the name, of a run that begins.

#include <string>

#include "ground/base/result.h"

namespace systole {

// "runs/<name>-<n>", which does not exist yet.
std::string fresh_folder(const std::string& name);

// A reserved run name; runs that begin at the same time get different ones. Released if the run does not start.
class ReservedRunName {
 public:
  explicit ReservedRunName(const std::string& name);
  ~ReservedRunName();
  ReservedRunName(const ReservedRunName&) = delete;
  ReservedRunName& operator=(const ReservedRunName&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// Checks that a folder can name a run, unless it holds one; "": named later. Errors: invalid, with a valid name; those
// of the working folder.
Status check_names_a_run(const std::string& folder);

}  // namespace systole
