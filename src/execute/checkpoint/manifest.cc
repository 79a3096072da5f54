#include "execute/checkpoint/manifest.h"

#include <algorithm>

#include "ground/base/hash.h"

namespace systole::checkpoint {

namespace {

std::string quoted(const std::string& text) { return to_json(Node(text)); }

std::string list_text(const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string piece_text(const Piece& piece) {
  return fmt::format(R"({{"start":{},"end":{},"chunk":{},"offset":{},"encoding":"raw"}})", list_text(piece.box.start),
                     list_text(piece.box.end), piece.chunk, piece.offset);
}

std::string tensor_text(const TensorEntry& tensor) {
  std::string text = fmt::format(R"({{"name":{},"role":"{}","dtype":"{}","shape":{},"pieces":[)", quoted(tensor.name),
                                 name_of(tensor.role), name_of(tensor.dtype), list_text(tensor.shape));
  for (std::size_t p = 0; p < tensor.pieces.size(); ++p) text += (p ? "," : "") + piece_text(tensor.pieces[p]);
  return text + "]}";
}

std::string body_text(const Manifest& manifest) {
  std::string text =
      fmt::format("\"body\":{{\"step\":{},\"date\":{},\"model\":{},\"model_hash\":{},\"workload_hash\":{},\n",
                  manifest.step, quoted(manifest.date), quoted(manifest.identity.model),
                  quoted(manifest.identity.model_hash), quoted(manifest.identity.workload_hash));
  text += fmt::format("\"metric\":{},\n", manifest.metric ? to_json(Node(*manifest.metric)) : "null");
  text += fmt::format("\"extra\":{},\n", manifest.extra.is_null() ? "{}" : to_json(manifest.extra));
  text += "\"chunks\":[";
  for (std::size_t c = 0; c < manifest.chunks.size(); ++c) {
    text += fmt::format("{}{{\"hash\":\"{}\",\"bytes\":{}}}", c ? ",\n" : "\n", manifest.chunks[c].hash,
                        manifest.chunks[c].bytes.count());
  }
  text += "],\n\"tensors\":[";
  for (std::size_t t = 0; t < manifest.tensors.size(); ++t)
    text += (t ? ",\n" : "\n") + tensor_text(manifest.tensors[t]);
  return text + "]}}\n";
}

std::string hash_of(std::int64_t version, std::string_view rest) {
  Hasher hasher;
  hasher.add(fmt::format("{} {}\n", kManifestFormat, version)).add(rest);
  return to_hex(hasher.digest());
}

std::string first_line(std::int64_t version, std::string_view hash) {
  return fmt::format(R"({{"format":"{}","version":{},"hash":"{}",)", kManifestFormat, version, hash) + "\n";
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

std::string to_text(const Manifest& manifest) {
  const std::string rest = body_text(manifest);
  return first_line(kManifestVersion, hash_of(kManifestVersion, rest)) + rest;
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

Error bad(const Node& node, std::string message) { return error(ErrorKind::corrupt, "{}", message).at(node.where()); }

Result<std::vector<std::int64_t>> read_list(const Node& node) {
  if (!node.is_sequence()) return node.wrong("a list of numbers");
  std::vector<std::int64_t> numbers;
  for (const Node& item : node.items()) numbers.push_back(TRY(item.as_int(0)));
  return numbers;
}

Result<ChunkFile> read_chunk(const Node& node) {
  const Node* hash = TRY(node.get("hash"));
  const Node* bytes = TRY(node.get("bytes"));
  ChunkFile chunk;  // not one initializer: gcc 12 leaks the first member when TRY returns from the second
  chunk.hash = TRY(hash->as_string());
  chunk.bytes = Bytes(TRY(bytes->as_int(0)));
  const bool well_formed = chunk.hash.size() == 32 && hashes_named_in(chunk.hash).size() == 1;
  if (!well_formed) return bad(*hash, fmt::format("'{}' is no chunk name (32 hex digits)", chunk.hash));
  return chunk;
}

Result<Piece> read_piece(const Node& node) {
  Piece piece;
  piece.box.start = TRY(read_list(*TRY(node.get("start"))));
  piece.box.end = TRY(read_list(*TRY(node.get("end"))));
  piece.chunk = TRY(TRY(node.get("chunk"))->as_int(0));
  piece.offset = TRY(TRY(node.get("offset"))->as_int(0));
  const Node* encoding = TRY(node.get("encoding"));
  const std::string name = TRY(encoding->as_string());
  if (name != "raw") {
    return error(ErrorKind::unsupported, "encoding '{}' is not known to this version of Systole", name)
        .at(encoding->where())
        .hinted("known: raw");
  }
  return piece;
}

Result<DType> read_dtype(const Node& node, const std::string& tensor) {
  const std::string name = TRY(node.as_string());
  const auto dtype = dtype_named(name);
  if (!dtype) {
    return error(ErrorKind::unsupported, "tensor '{}' has the dtype '{}', which this version of Systole does not know",
                 tensor, name)
        .at(node.where());
  }
  return *dtype;
}

Result<TensorEntry> read_tensor(const Node& node) {
  TensorEntry tensor;
  tensor.name = TRY(TRY(node.get("name"))->as_string());
  const Node* role = TRY(node.get("role"));
  const std::string role_name = TRY(role->as_string());
  if (role_name != name_of(Role::parameter) && role_name != name_of(Role::state)) {
    return bad(*role, fmt::format("tensor '{}' has the unknown role '{}'", tensor.name, role_name));
  }
  tensor.role = role_name == name_of(Role::parameter) ? Role::parameter : Role::state;
  tensor.dtype = TRY(read_dtype(*TRY(node.get("dtype")), tensor.name));
  tensor.shape = TRY(read_list(*TRY(node.get("shape"))));
  const Node* pieces = TRY(node.get("pieces"));
  if (!pieces->is_sequence()) return pieces->wrong("a list of pieces");
  for (const Node& piece : pieces->items()) tensor.pieces.push_back(TRY(read_piece(piece)));
  return tensor;
}

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
  const Node* chunks = TRY(body.get("chunks"));
  if (!chunks->is_sequence()) return chunks->wrong("a list of chunks");
  for (const Node& chunk : chunks->items()) manifest.chunks.push_back(TRY(read_chunk(chunk)));
  const Node* tensors = TRY(body.get("tensors"));
  if (!tensors->is_sequence()) return tensors->wrong("a list of tensors");
  for (const Node& tensor : tensors->items()) manifest.tensors.push_back(TRY(read_tensor(tensor)));
  TRY(check(manifest));
  return manifest;
}

struct FirstLine {
  std::int64_t version = 0;
  std::string hash;
  std::string_view rest;  // all bytes after the line
};

Result<FirstLine> read_first_line(std::string_view text, std::string_view file) {
  const Error no_manifest =
      error(ErrorKind::corrupt, "this is no manifest of a checkpoint, or its first line is damaged")
          .at({std::string(file), 1});
  const std::size_t newline = text.substr(0, 200).find('\n');
  if (newline == std::string_view::npos) return no_manifest;
  const std::string_view line = text.substr(0, newline);
  const std::string closed = std::string(line.substr(0, line.size() - (line.ends_with(',') ? 1 : 0))) + "}";
  auto head = parse_json(closed, file);
  if (!head || !head->is_map()) return no_manifest;
  const Node *version = head->find("version"), *hash = head->find("hash");
  if (!version || !hash) return no_manifest;
  const auto number = version->as_int(1);
  if (!number || first_line(*number, hash->text()) != text.substr(0, newline + 1)) return no_manifest;
  return FirstLine{*number, hash->text(), text.substr(newline + 1)};
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file) {
  const FirstLine head = TRY(read_first_line(text, file));
  const std::string hash = hash_of(head.version, head.rest);
  if (hash != head.hash) {
    return error(ErrorKind::corrupt, "the manifest is damaged: it says hash {} and its text has {}", head.hash, hash)
        .at({std::string(file)});
  }
  if (head.version > kManifestVersion) {
    return error(ErrorKind::unsupported, "this checkpoint is of format version {}, this Systole reads up to {}",
                 head.version, kManifestVersion)
        .at({std::string(file)})
        .hinted("use the version of Systole that wrote it, or a newer one");
  }
  constexpr ParseLimits kLimits{.depth = 100, .bytes = std::int64_t{1} << 32};
  auto document = parse_json(text, file, kLimits);
  Result<Manifest> manifest = document ? Result<Manifest>(Manifest()) : Result<Manifest>(std::move(document).error());
  if (document) {
    const Node* body = document->find("body");
    manifest = body ? read_body(*body) : Result<Manifest>(document->wrong("a body"));
  }
  if (manifest || manifest.error().kind == ErrorKind::unsupported) return manifest;
  Error damaged = std::move(manifest).error();
  damaged.kind = ErrorKind::corrupt;
  if (damaged.where.file.empty()) damaged.where.file = std::string(file);
  return damaged;
}

}  // namespace systole::checkpoint
