#include "execute/checkpoint/manifest_json.h"

namespace systole::checkpoint {

namespace {

std::string list_text(const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string piece_text(const Piece& piece) {
  return fmt::format(R"({{"start":{},"end":{},"chunk":{},"offset":{},"encoding":"{}"}})", list_text(piece.box.start),
                     list_text(piece.box.end), piece.chunk, piece.offset, name_of(piece.encoding));
}

std::string chunk_text(const ChunkFile& chunk) {
  std::string text = fmt::format(R"({{"hash":"{}","bytes":{})", chunk.hash, chunk.bytes.count());
  if (chunk.coding) {
    text += fmt::format(R"(,"raw":{},"zstd":{},"salt":"{}","frames":{})", chunk.coding->raw.count(), chunk.coding->zstd,
                        chunk.coding->salt, list_text(chunk.coding->frames));
  }
  if (!chunk.sha256.empty()) text += fmt::format(R"(,"sha256":"{}")", chunk.sha256);
  return text + "}";
}

std::string tensor_text(const TensorEntry& tensor) {
  std::string text =
      fmt::format(R"({{"name":{},"role":"{}","dtype":"{}","shape":{},"pieces":[)", json_text(tensor.name),
                  name_of(tensor.role), name_of(tensor.dtype), list_text(tensor.shape));
  for (std::size_t p = 0; p < tensor.pieces.size(); ++p) text += (p ? "," : "") + piece_text(tensor.pieces[p]);
  return text + "]}";
}

}  // namespace

std::string json_text(const std::string& text) { return to_json(Node(text)); }

std::string to_json_text(std::span<const ChunkFile> chunks, std::span<const TensorEntry> tensors) {
  std::string text = "\"chunks\":[";
  for (std::size_t c = 0; c < chunks.size(); ++c) { text += (c ? ",\n" : "\n") + chunk_text(chunks[c]); }
  text += "],\n\"tensors\":[";
  for (std::size_t t = 0; t < tensors.size(); ++t) text += (t ? ",\n" : "\n") + tensor_text(tensors[t]);
  return text + "]";
}

namespace {

constexpr Encoding kEncodings[] = {Encoding::raw, Encoding::zstd, Encoding::encrypted, Encoding::zstd_encrypted};

Error bad(const Node& node, std::string message) { return error(ErrorKind::corrupt, "{}", message).at(node.where()); }

Result<std::vector<std::int64_t>> read_list(const Node& node) {
  if (!node.is_sequence()) return node.wrong("a list of numbers");
  std::vector<std::int64_t> numbers;
  for (const Node& item : node.items()) numbers.push_back(TRY(item.as_int(0)));
  return numbers;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<Coding> read_coding(const Node& node) {
  Coding coding;
  coding.raw = Bytes(TRY(TRY(node.get("raw"))->as_int(0)));
  coding.zstd = TRY(TRY(node.get("zstd"))->as_bool());
  const Node* salt = TRY(node.get("salt"));
  coding.salt = TRY(salt->as_string());
  if (!coding.salt.empty() && !is_hex(coding.salt, 64))
    return bad(*salt, fmt::format("'{}' is no salt (64 hex digits)", coding.salt));
  coding.frames = TRY(read_list(*TRY(node.get("frames"))));
  return coding;
}

Result<ChunkFile> read_chunk(const Node& node) {
  const Node* hash = TRY(node.get("hash"));
  const Node* bytes = TRY(node.get("bytes"));
  ChunkFile chunk;  // not one initializer: gcc 12 leaks the first member when TRY returns from the second
  chunk.hash = TRY(hash->as_string());
  chunk.bytes = Bytes(TRY(bytes->as_int(0)));
  if (!is_hex(chunk.hash, 32)) return bad(*hash, fmt::format("'{}' is no chunk name (32 hex digits)", chunk.hash));
  if (const Node* sha = node.find("sha256")) {
    chunk.sha256 = TRY(sha->as_string());
    if (!is_hex(chunk.sha256, 64)) return bad(*sha, fmt::format("'{}' is no SHA-256", chunk.sha256));
  }
  if (node.find("raw")) chunk.coding = TRY(read_coding(node));
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
  for (const Encoding known : kEncodings) {
    if (name != name_of(known)) continue;
    piece.encoding = known;
    return piece;
  }
  return error(ErrorKind::unsupported, "encoding '{}' is not known to this version of Systole", name)
      .at(encoding->where())
      .hinted("known: raw, zstd, aes-256-gcm, zstd+aes-256-gcm");
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

}  // namespace

Status read_chunks_and_tensors(const Node& body, std::vector<ChunkFile>& chunks, std::vector<TensorEntry>& tensors) {
  const Node* listed = TRY(body.get("chunks"));
  if (!listed->is_sequence()) return listed->wrong("a list of chunks");
  for (const Node& chunk : listed->items()) chunks.push_back(TRY(read_chunk(chunk)));
  listed = TRY(body.get("tensors"));
  if (!listed->is_sequence()) return listed->wrong("a list of tensors");
  for (const Node& tensor : listed->items()) tensors.push_back(TRY(read_tensor(tensor)));
  return {};
}

}  // namespace systole::checkpoint
