#pragma once
// The manifest of one checkpoint: the logical name and shape of each tensor, and where its bytes are. The manifest is
// written last: a checkpoint exists exactly when its manifest does. It does not depend on the mesh of the writers, so
// any mesh can read it.
//
// A checkpoint folder:
//
//   chunks/<32 hex>                  bytes, named by their xxh128; immutable
//   manifests/<step, 12 digits>.json one per checkpoint
//   manifests/<step>.blessed         an empty marker: retention never removes this checkpoint
//   parts/                           exists while several ranks write a checkpoint: group.h
//   **/.systole-*                    temporary files of a file store (object_store.h); leftovers are swept
//   **/*.tmp                         leftovers of an older Systole that was killed; swept
//
// A manifest is JSON text in two parts. This is version 1; sealed_text.h explains line 1:
//
//   line 1   {"format":"systole-checkpoint","version":1,"hash":"<32 hex>",
//   rest     "body":{ … }}
//
//   body     {"step":100,"date":"2026-01-31T12:00:00Z","model":"gpt","model_hash":"…","workload_hash":"…",
//             "metric":1.25 or null,      compared by `best`; lower is better
//             "extra":{…},                for the trainer: data cursor, seed, tokens seen, skipped updates
//             "chunks":[{"hash":"<32 hex>","bytes":4096}, …],
//             "tensors":[{"name":"blocks.7.attn.q","role":"parameter","dtype":"f32","shape":[128,128],
//                         "pieces":[{"start":[0,0],"end":[128,128],"chunk":0,"offset":0,"encoding":"raw"}, …]}, …]}
//
// `chunk` is an index in `chunks`. `raw` elements are dense, row-major, little-endian. The pieces of a tensor cover it
// and do not overlap. A compressed or encrypted chunk (coding.h) has more fields, and its pieces name the encoding:
//
//   {"hash":"…","bytes":1234,"raw":4096,"zstd":true,"salt":"<64 hex>" or "","frames":[1234]}
//
// With keys (keys.h), a signed manifest has "sha256" for each chunk, and `,"seal":{…}` follows the body.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/box.h"
#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole::checkpoint {

inline constexpr int kManifestVersion = 1;
inline constexpr std::string_view kManifestFormat = "systole-checkpoint";

// The encoding of a piece's chunk. Each piece repeats it, so that a Systole that does not know it can name it.
enum class Encoding { raw, zstd, encrypted, zstd_encrypted };
const char* name_of(Encoding encoding);  // "raw", "zstd", "aes-256-gcm", "zstd+aes-256-gcm"

// A box of a tensor, stored in a chunk file.
struct Piece {
  Box box;
  std::int64_t chunk = 0;   // index in Manifest::chunks
  std::int64_t offset = 0;  // bytes from the start of the chunk's raw bytes
  Encoding encoding = Encoding::raw;
  bool operator==(const Piece&) const = default;
};

// How the file of a compressed or encrypted chunk encodes its raw bytes (coding.h).
struct Coding {
  Bytes raw;
  bool zstd = false;
  std::string salt;                  // 64 hex digits; empty: not encrypted
  std::vector<std::int64_t> frames;  // encoded bytes of each frame
  bool operator==(const Coding&) const = default;
};

struct ChunkFile {
  std::string hash;  // 32 hex digits: xxh128 of the file's bytes; also the file's name
  Bytes bytes;       // of the file
  std::optional<Coding> coding = {};
  std::string sha256 = {};  // SHA-256 of the file's bytes if the manifest is signed; else empty

  Bytes raw_bytes() const { return coding ? coding->raw : bytes; }
  Encoding encoding() const;
  bool operator==(const ChunkFile&) const = default;
};

// Parameters are exported as the model; state is for the optimizer alone.
enum class Role { parameter, state };
const char* name_of(Role role);

struct TensorEntry {
  std::string name;  // logical, per layer: "blocks.7.attn.q"; unique in the manifest
  Role role = Role::parameter;
  DType dtype = DType::f32;
  Shape shape;  // unpadded, unstacked, unfused
  std::vector<Piece> pieces;

  Bytes bytes() const { return bytes_of(dtype, shape); }
  bool operator==(const TensorEntry&) const = default;
};

// The run that wrote the checkpoint. The trainer compares the strings for equality and shows them to people.
struct Identity {
  std::string model;  // name, "gpt"
  std::string model_hash;
  std::string workload_hash;
  bool operator==(const Identity&) const = default;
};

struct Manifest {
  std::int64_t step = 0;  // steps done; names the checkpoint
  std::string date;       // ISO 8601, UTC, from the writer's clock
  Identity identity;
  std::optional<double> metric;  // finite; lower is better
  Node extra;                    // a JSON object
  std::vector<ChunkFile> chunks;
  std::vector<TensorEntry> tensors;

  const TensorEntry* find(std::string_view name) const;  // null when absent
  Bytes tensor_bytes() const;                            // of all tensors, each element once
  Bytes chunk_bytes() const;                             // of all chunk files
};

struct Keys;

// The text of a manifest, with the seals that `keys` give (keys.h). REQUIRES: check(manifest) holds.
std::string to_text(const Manifest& manifest, const Keys* keys = nullptr);

// Checks, before parsing, that the text has the seals that `keys` require. Errors: corrupt, unsupported, invalid.
Status check_authentic(const Keys* keys, std::string_view text, std::string_view file);

// Parses and checks. `file` names the source in errors. Errors: corrupt (wrong hash or format, or a rule of the body is
// broken), unsupported (a newer version, an unknown dtype or encoding, each by name).
Result<Manifest> parse_manifest(std::string_view text, std::string_view file);

// Checks every rule of the body: unique names, boxes inside shapes, no overlap, full coverage, pieces inside chunks.
// Errors: invalid, naming the tensor and the piece.
Status check(const Manifest& manifest);

// Every 32-hex-digit word of a text. Retention uses it to keep the chunks that an unreadable manifest still names.
std::vector<std::string> hashes_named_in(std::string_view text);

}  // namespace systole::checkpoint
