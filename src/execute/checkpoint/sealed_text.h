#pragma once
// Text with a checksum and a version, so that damage and a newer version can be told apart. It has two parts, which are
// JSON together:
//
//   line 1   {"format":"<format>","version":<version>,"hash":"<32 hex>",
//   rest     everything after line 1
//
// The hash is the xxh128 of "<format> <version>\n" and every byte after line 1. This holds for all versions.

#include <string>
#include <string_view>

#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole::checkpoint {

struct TextKind {
  std::string_view format;  // "systole-checkpoint"
  int version = 1;          // the version written, and the newest version read
  std::string_view what;    // "manifest", for messages
};

// `rest`, with line 1 before it.
std::string seal_text(const TextKind& kind, std::string_view rest);

// Parses the document. `file` names the source in errors. Errors: corrupt (another format, wrong hash, not JSON),
// unsupported (a newer version).
Result<Node> open_sealed_text(const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
