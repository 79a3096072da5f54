#pragma once
// Text of which damage and a newer version are told apart, in two parts, JSON together:
//
//   line 1   {"format":"<format>","version":<version>,"hash":"<32 hex>",
//   rest     all that follows, to the end
//
// The hash is the xxh128 of "<format> <version>\n" and every byte after line 1. This holds for all versions.

#include <string>
#include <string_view>

#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole::checkpoint {

struct TextKind {
  std::string_view format;  // "systole-checkpoint"
  int version = 1;          // that is written, and the newest that is read
  std::string_view what;    // "manifest", for messages
};

// `rest` with its first line before it.
std::string seal_text(const TextKind& kind, std::string_view rest);

// The document. `file` names the source in errors. Errors: corrupt (not of this format, another hash, no JSON),
// unsupported (a newer version).
Result<Node> open_sealed_text(const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
