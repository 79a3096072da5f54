#pragma once
// A third-party library that is loaded on first use, so that users who do not need it run without it installed. The
// build needs only its headers. Per library one of our files defines the called functions; each jumps through a table
// that is filled here (execute/backends/cpu/dnnl_library.cc, execute/data/sentencepiece_library.cc).

#include <string>

#include "ground/base/result.h"

namespace systole {

class LateLibrary {
 public:
  // By its path, or by a name that the dynamic linker searches. It stays loaded, with local symbols. Errors:
  // unsupported, with the dynamic linker's message.
  static Result<LateLibrary> open(const std::string& file);

  struct Requirement {
    const char *soname, *package;
    const char* why;  // "the cpu backend multiplies with oneDNN"
  };
  // As open(). Errors: unsupported; the message says why the library is needed and which package provides it.
  static Result<LateLibrary> load(const Requirement& wanted);

  // Null if the library has no such symbol. REQUIRES: it is a function of this type.
  template <typename Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }
  // Errors: as load(), if the library has no such symbol.
  template <typename Function>
  Status fill(Function*& function, const char* symbol) const {
    function = find<Function>(symbol);
    return function != nullptr ? Status() : Status(lacks(symbol));
  }

 private:
  LateLibrary(void* handle, const Requirement& wanted) : handle_(handle), wanted_(wanted) {}
  void* address(const char* symbol) const;
  Error lacks(const char* symbol) const;

  void* handle_;
  Requirement wanted_;
};

}  // namespace systole
