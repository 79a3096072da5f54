#include "execute/serve/batch/batch_request.h"

#include "execute/serve/request_fields.h"

namespace systole {
namespace {

// What the row itself says of its request.
Result<Node> own_body(const BatchJob& job, const Node& row) {
  if (const Node* id = row.find("custom_id"); id != nullptr && !id->is_null())
    TRY(Fields::named("custom_id", id->as_string()));
  if (job.prompt) {
    Node text(TRY(job.prompt->fill(row)));
    switch (job.kind) {
      case BatchKind::completions:
      case BatchKind::classify:
      case BatchKind::score: return Node::map({{"prompt", std::move(text)}});
      case BatchKind::embeddings: return Node::map({{"input", std::move(text)}});
      case BatchKind::chat: break;
    }
    Node message = Node::map({{"role", "user"}, {"content", std::move(text)}});
    return Node::map({{"messages", Node::sequence({std::move(message)})}});
  }
  Fields fields(row);
  TRY(fields.text("custom_id"));
  const std::string method = TRY(fields.text("method"));
  if (method != "POST") return key_error(ErrorKind::invalid, "method", "'{}' is not POST", method);
  const std::string url = TRY(fields.text("url"));
  if (url != url_of(job.kind)) {
    return key_error(ErrorKind::invalid, "url", "'{}' in a job of kind {}, whose requests are for {}", url,
                     name_of(job.kind), url_of(job.kind));
  }
  const Node& body = *TRY(fields.required("body"));
  if (!body.is_map()) return Fields::named("body", Result<Node>(body.wrong("a JSON object")));
  TRY(fields.nothing_else());
  return body;
}

bool has(const Node& body, std::string_view field) {
  const Node* value = body.find(field);
  return value != nullptr && !value->is_null();
}

}  // namespace

std::optional<std::string> custom_id_of(const Node& row) {
  const Node* id = row.find("custom_id");
  if (id == nullptr || id->kind() != NodeKind::string || id->text().empty()) return std::nullopt;
  return id->text();
}

Result<BatchRequest> request_of(const BatchJob& job, const Node& row) {
  const Node own = TRY(own_body(job, row));
  Node body = job.fields;
  body.set("model", job.name);
  for (const Node::Entry& entry : own.entries()) body.set(entry.key, entry.value);
  if (job.kind == BatchKind::embeddings) return BatchRequest{TRY(read_embeddings(body))};
  if (is_scored(job.kind)) return BatchRequest{TRY(read_score(body, job.kind == BatchKind::classify))};
  CompletionRequest request = TRY(job.kind == BatchKind::chat ? read_chat(body) : read_completion(body));
  if (request.stream)
    return key_error(ErrorKind::unsupported, "stream", "the answers of a batch are whole").hinted("leave it out");
  return BatchRequest{std::move(request), has(own, "seed")};
}

}  // namespace systole
