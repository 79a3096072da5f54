#pragma once
// A library of others that is found when it is first needed, so that who does without it runs where it is not
// installed. The build takes its headers alone; a file of ours stands in for the functions that are called, each a step
// into a table that is filled here (execute/backends/cpu/dnnl_library.cc, execute/data/sentencepiece_library.cc).

#include <string>

#include "ground/base/result.h"

namespace systole {

class LateLibrary {
 public:
  // By its path, or by its name as the dynamic linker looks for it. It stays in the process, and its names are nobody
  // else's. Errors: unsupported, with the dynamic linker's words.
  static Result<LateLibrary> open(const std::string& file);

  struct Wanted {
    const char *soname, *package;
    const char* why;  // "the cpu backend multiplies with oneDNN"
  };
  // As open(). Errors: unsupported, saying why it is wanted and which package has it.
  static Result<LateLibrary> load(const Wanted& wanted);

  // Null where the library has nothing of this name. REQUIRES: it is a function of this type.
  template <typename Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }
  // Errors: as load(), when the library has nothing of this name.
  template <typename Function>
  Status fill(Function*& function, const char* symbol) const {
    function = find<Function>(symbol);
    return function != nullptr ? Status() : Status(lacks(symbol));
  }

 private:
  LateLibrary(void* handle, const Wanted& wanted) : handle_(handle), wanted_(wanted) {}
  void* address(const char* symbol) const;
  Error lacks(const char* symbol) const;

  void* handle_;
  Wanted wanted_;
};

}  // namespace systole
