#include "execute/checkpoint/part.h"

#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/manifest_json.h"
#include "execute/checkpoint/sealed_head.h"

namespace systole::checkpoint {

namespace {

constexpr TextKind kPart{"systole-checkpoint-part", 1, "part"};
constexpr TextKind kOutcome{"systole-checkpoint-outcome", 1, "outcome"};

std::string failure_text(const std::optional<Error>& failed) {
  if (!failed) return "null";
  return fmt::format(R"({{"kind":"{}","message":{},"file":{},"hint":{}}})", name_of(failed->kind),
                     json_text(failed->message), json_text(failed->where.file), json_text(failed->hint));
}

Result<std::optional<Error>> read_failure(const Node& node) {
  if (node.is_null()) return std::optional<Error>();
  Error failed;
  const std::string kind = TRY(TRY(node.get("kind"))->as_string());
  failed.kind = ErrorKind::internal;
  for (int k = 0; k < static_cast<int>(ErrorKind::internal); ++k) {
    if (kind == name_of(static_cast<ErrorKind>(k))) failed.kind = static_cast<ErrorKind>(k);
  }
  failed.message = TRY(TRY(node.get("message"))->as_string());
  failed.where.file = TRY(TRY(node.get("file"))->as_string());
  failed.hint = TRY(TRY(node.get("hint"))->as_string());
  return std::optional<Error>(std::move(failed));
}

Status put(ObjectStore& store, const std::string& path, const std::string& text) {
  TRY(store.put(path, text, {}, Durability::none));
  return {};
}

// The document of a file; nothing if it does not exist yet.
Result<std::optional<Node>> get(const Folder& folder, const TextKind& kind, const std::string& path) {
  auto text = get_text(*folder.store, path);
  if (!text && text.error().kind == ErrorKind::not_found) return std::optional<Node>();
  if (!text) return std::move(text).error();
  if (kind.format == kPart.format && folder.keys) {
    TRY(check_head(kind, *text, path));
    TRY(check_seal(folder.keys.get(), kind, *text, path));
  }
  return std::optional<Node>(TRY(open_sealed_text(kind, *text, path)));
}

Status check_same(const Node& document, std::string_view key, std::string_view expected) {
  const Node* node = TRY(document.get(key));
  if (node->text() == expected) return {};
  return error(ErrorKind::corrupt, "its {} is '{}' and not '{}'", key, node->text(), expected).at(node->where());
}

}  // namespace

Status write_part(const Folder& folder, const WriterPart& part) {
  const std::string body =
      fmt::format("\"save\":{},\"rank\":{},\"world\":{},\"step\":{},\n\"failed\":{},\n", json_text(part.save),
                  part.rank, part.world, part.step, failure_text(part.failed)) +
      to_json_text(part.chunks, part.tensors);
  return put(*folder.store, folder.part(part.save, part.rank),
             seal_text(kPart, body + seal_of(folder.keys.get(), kPart, body) + "}\n"));
}

Result<std::optional<WriterPart>> read_part(const Folder& folder, std::string_view save, int rank) {
  const auto document = TRY(get(folder, kPart, folder.part(save, rank)));
  if (!document) return std::optional<WriterPart>();
  TRY(check_same(*document, "save", save));
  TRY(check_same(*document, "rank", std::to_string(rank)));
  WriterPart part;
  part.save = save;
  part.rank = rank;
  part.world = static_cast<int>(TRY(TRY(document->get("world"))->as_int(1, 1 << 30)));
  part.step = TRY(TRY(document->get("step"))->as_int(0));
  part.failed = TRY(read_failure(*TRY(document->get("failed"))));
  TRY(read_chunks_and_tensors(*document, part.chunks, part.tensors));
  return std::optional<WriterPart>(std::move(part));
}

Status write_outcome(const Folder& folder, const std::string& save, std::int64_t step,
                     const std::optional<Error>& failed) {
  const std::string body =
      fmt::format("\"save\":{},\"step\":{},\"failed\":{}}}\n", json_text(save), step, failure_text(failed));
  return put(*folder.store, folder.outcome(save), seal_text(kOutcome, body));
}

Result<std::optional<Outcome>> read_outcome(const Folder& folder, const std::string& save, std::int64_t step) {
  const auto document = TRY(get(folder, kOutcome, folder.outcome(save)));
  if (!document) return std::optional<Outcome>();
  TRY(check_same(*document, "save", save));
  if (TRY(TRY(document->get("step"))->as_int(0)) != step) return std::optional<Outcome>();
  Outcome outcome;
  outcome.failed = TRY(read_failure(*TRY(document->get("failed"))));
  return std::optional<Outcome>(std::move(outcome));
}

}  // namespace systole::checkpoint
