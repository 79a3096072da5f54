#pragma once
// Imports a pasted text. For tests.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "operate/import/import.h"

namespace systole {

using Words = std::vector<std::string>;

inline Imported imported(const std::string& text) {
  const Result<Imported> made = import_job({text, "pasted"});
  CHECK(made.ok(), "{}", to_string(made.error()));
  return *made;
}

inline Workload workload_of(const std::string& text) { return read_workload(imported(text).yaml, "f").value(); }

// Every error with its hint; empty: the import succeeded.
inline std::string refused(const std::string& text) {
  const Result<Imported> made = import_job({text, "pasted"});
  if (made.ok()) return "";
  std::string all = made.error().message + " | " + made.error().hint + "\n";
  for (const Error& other : made.error().others) all += other.message + " | " + other.hint + "\n";
  return all;
}

inline bool tells(const Imported& made, std::string_view what) {
  return std::ranges::any_of(made.left_out,
                             [&](const LeftOut& out) { return out.what.find(what) != std::string::npos; });
}

inline bool notes(const Imported& made, std::string_view what) {
  return std::ranges::any_of(made.notes,
                             [&](const LeftOut& note) { return note.what.find(what) != std::string::npos; });
}

// Why it was left out, or in which form it is carried over; empty: neither is reported.
inline std::string why(const Imported& made, std::string_view what) {
  for (const std::vector<LeftOut>* list : {&made.left_out, &made.notes})
    for (const LeftOut& out : *list)
      if (out.what.find(what) != std::string::npos) return out.why;
  return "";
}

}  // namespace systole
