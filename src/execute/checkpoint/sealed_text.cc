#include "execute/checkpoint/sealed_head.h"

#include <algorithm>

#include "ground/base/hash.h"

namespace systole::checkpoint {

namespace {

std::string hash_of(std::string_view format, std::int64_t version, std::string_view rest) {
  Hasher hasher;
  hasher.add(fmt::format("{} {}\n", format, version)).add(rest);
  return to_hex(hasher.digest());
}

std::string first_line(std::string_view format, std::int64_t version, std::string_view hash) {
  return fmt::format(R"({{"format":"{}","version":{},"hash":"{}",)", format, version, hash) + "\n";
}

struct FirstLine {
  std::int64_t version = 0;
  std::string hash;
  std::string_view rest;  // all bytes after line 1
};

Result<FirstLine> read_first_line(const TextKind& kind, std::string_view text, std::string_view file) {
  const Error none = error(ErrorKind::corrupt, "this is no {} of a checkpoint, or its first line is damaged", kind.what)
                         .at({std::string(file), 1});
  const std::size_t newline = text.substr(0, 200).find('\n');
  if (newline == std::string_view::npos) return none;
  const std::string_view line = text.substr(0, newline);
  const std::string closed = std::string(line.substr(0, line.size() - (line.ends_with(',') ? 1 : 0))) + "}";
  auto head = parse_json(closed, file);
  if (!head || !head->is_map()) return none;
  const Node *version = head->find("version"), *hash = head->find("hash");
  if (!version || !hash) return none;
  const auto number = version->as_int(1);
  if (!number || first_line(kind.format, *number, hash->text()) != text.substr(0, newline + 1)) return none;
  return FirstLine{*number, hash->text(), text.substr(newline + 1)};
}

}  // namespace

std::string seal_text(const TextKind& kind, std::string_view rest) {
  return first_line(kind.format, kind.version, hash_of(kind.format, kind.version, rest)) + std::string(rest);
}

Status check_head(const TextKind& kind, std::string_view text, std::string_view file) {
  const FirstLine head = TRY(read_first_line(kind, text, file));
  const std::string hash = hash_of(kind.format, head.version, head.rest);
  if (hash != head.hash) {
    return error(ErrorKind::corrupt, "the {} is damaged: it says hash {} and its text has {}", kind.what, head.hash,
                 hash)
        .at({std::string(file)});
  }
  if (head.version > kind.version) {
    return error(ErrorKind::unsupported, "this checkpoint is of format version {}, this Systole reads up to {}",
                 head.version, kind.version)
        .at({std::string(file)})
        .hinted("use the version of Systole that wrote it, or a newer one");
  }
  return {};
}

Result<Node> open_sealed_text(const TextKind& kind, std::string_view text, std::string_view file) {
  TRY(check_head(kind, text, file));
  constexpr ParseLimits kLimits{.depth = 100, .bytes = std::int64_t{1} << 32};
  auto document = parse_json(text, file, kLimits);
  if (document) return document;
  Error damaged = std::move(document).error();
  damaged.kind = ErrorKind::corrupt;
  if (damaged.where.file.empty()) damaged.where.file = std::string(file);
  return damaged;
}

}  // namespace systole::checkpoint
