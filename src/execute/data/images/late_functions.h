#pragma once
// Functions of a C library that is loaded at its first use: their pointers as members of a struct.

#include "ground/base/late_library.h"

#define SYSTOLE_LATE_MEMBER(prefix, name) decltype(&::prefix##name) name = nullptr;
#define SYSTOLE_LATE_FILL(prefix, name) TRY(library.fill(entries.name, #prefix #name));

// Defines `struct Library`, with a member f for each X(png_, f) of FUNCTIONS(X), a pointer to png_f, and library(), which
// loads them once: from LateLibrary::load({...}).
#define SYSTOLE_LATE_FUNCTIONS(FUNCTIONS, ...)                           \
  struct Library {                                                       \
    FUNCTIONS(SYSTOLE_LATE_MEMBER)                                       \
  };                                                                     \
  const Result<Library>& library() {                                     \
    static const Result<Library> loaded = []() -> Result<Library> {      \
      Library entries;                                                   \
      const LateLibrary library = TRY(LateLibrary::load({__VA_ARGS__})); \
      FUNCTIONS(SYSTOLE_LATE_FILL)                                       \
      return entries;                                                    \
    }();                                                                 \
    return loaded;                                                       \
  }
