#include "execute/checkpoint/manifest.h"

#include <algorithm>

#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/manifest_json.h"
#include "execute/checkpoint/sealed_head.h"

namespace systole::checkpoint {

namespace {

constexpr TextKind kText{kManifestFormat, kManifestVersion, "manifest"};

std::string body_text(const Manifest& manifest) {
  std::string text =
      fmt::format("\"body\":{{\"step\":{},\"date\":{},\"model\":{},\"model_hash\":{},\"workload_hash\":{},\n",
                  manifest.step, json_text(manifest.date), json_text(manifest.identity.model),
                  json_text(manifest.identity.model_hash), json_text(manifest.identity.workload_hash));
  text += fmt::format("\"metric\":{},\n", manifest.metric ? to_json(Node(*manifest.metric)) : "null");
  text += fmt::format("\"extra\":{},\n", manifest.extra.is_null() ? "{}" : to_json(manifest.extra));
  return text + to_json_text(manifest.chunks, manifest.tensors) + "}";
}

}  // namespace

const char* name_of(Role role) { return role == Role::parameter ? "parameter" : "state"; }

const TensorEntry* Manifest::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorEntry& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Bytes Manifest::tensor_bytes() const {
  Bytes sum;
  for (const TensorEntry& tensor : tensors) sum += tensor.bytes();
  return sum;
}

Bytes Manifest::chunk_bytes() const {
  Bytes sum;
  for (const ChunkFile& chunk : chunks) sum += chunk.bytes;
  return sum;
}

const char* name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::raw: return "raw";
    case Encoding::zstd: return "zstd";
    case Encoding::encrypted: return "aes-256-gcm";
    case Encoding::zstd_encrypted: return "zstd+aes-256-gcm";
  }
  return "?";
}

Encoding ChunkFile::encoding() const {
  if (!coding) return Encoding::raw;
  if (coding->salt.empty()) return Encoding::zstd;
  return coding->zstd ? Encoding::zstd_encrypted : Encoding::encrypted;
}

std::string to_text(const Manifest& manifest, const Keys* keys) {
  const std::string body = body_text(manifest);
  return seal_text(kText, body + seal_of(keys, kText, body) + "}\n");
}

Status check_authentic(const Keys* keys, std::string_view text, std::string_view file) {
  if (keys == nullptr) return {};
  TRY(check_head(kText, text, file));
  return check_seal(keys, kText, text, file);
}

std::vector<std::string> hashes_named_in(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<std::string> hashes;
  for (std::size_t at = 0; (at = text.find_first_of(kDigits, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    if (end - at == 32) hashes.emplace_back(text.substr(at, 32));
    at = end;
  }
  return hashes;
}

// ---- reading

namespace {

Result<Manifest> read_body(const Node& body) {
  Manifest manifest;
  manifest.step = TRY(TRY(body.get("step"))->as_int(0));
  manifest.date = TRY(TRY(body.get("date"))->as_string());
  manifest.identity.model = TRY(TRY(body.get("model"))->as_string());
  manifest.identity.model_hash = TRY(TRY(body.get("model_hash"))->as_string());
  manifest.identity.workload_hash = TRY(TRY(body.get("workload_hash"))->as_string());
  const Node* metric = TRY(body.get("metric"));
  if (!metric->is_null()) manifest.metric = TRY(metric->as_double());
  const Node* extra = TRY(body.get("extra"));
  if (!extra->is_map()) return extra->wrong("a map");
  manifest.extra = *extra;
  TRY(read_chunks_and_tensors(body, manifest.chunks, manifest.tensors));
  TRY(check(manifest));
  return manifest;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file) {
  const Node document = TRY(open_sealed_text(kText, text, file));
  const Node* body = document.find("body");
  auto manifest = body ? read_body(*body) : Result<Manifest>(document.wrong("a body"));
  if (manifest || manifest.error().kind == ErrorKind::unsupported) return manifest;
  Error damaged = std::move(manifest).error();
  damaged.kind = ErrorKind::corrupt;
  if (damaged.where.file.empty()) damaged.where.file = std::string(file);
  return damaged;
}

}  // namespace systole::checkpoint
