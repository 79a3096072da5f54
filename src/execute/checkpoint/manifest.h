#pragma once
// The manifest of one checkpoint: every tensor by its logical name and shape, and where its bytes lie. It is written
// last, so a checkpoint exists exactly when its manifest does; it knows nothing of the mesh that wrote it, so any
// other mesh can read it.
//
// A checkpoint folder:
//
//   chunks/<32 hex>                  bytes named by their xxh128; never changed once there
//   manifests/<step, 12 digits>.json one per checkpoint
//   manifests/<step>.blessed         an empty marker: retention never removes this checkpoint
//   parts/                           while several ranks write one: group.h
//   **/*.tmp                         leftovers of a write that did not finish; swept
//
// A manifest is JSON text in two parts (this is version 1; sealed_text.h tells what line 1 is for):
//
//   line 1   {"format":"systole-checkpoint","version":1,"hash":"<32 hex>",
//   rest     "body":{ … }}
//
//   body     {"step":100,"date":"2026-01-31T12:00:00Z","model":"gpt","model_hash":"…","workload_hash":"…",
//             "metric":1.25 or null,      what `best` compares, lower is better
//             "extra":{…},                the trainer's own: data cursor, seed, tokens seen, skipped updates
//             "chunks":[{"hash":"<32 hex>","bytes":4096}, …],
//             "tensors":[{"name":"blocks.7.attn.q","role":"parameter","dtype":"f32","shape":[128,128],
//                         "pieces":[{"start":[0,0],"end":[128,128],"chunk":0,"offset":0,"encoding":"raw"}, …]}, …]}
//
// `chunk` counts in `chunks`. `raw` is the piece's elements, dense, row-major, little-endian. Pieces of a tensor do
// not overlap and cover it. A chunk that is compressed or encrypted (coding.h) says so, and its pieces' encoding too:
//
//   {"hash":"…","bytes":1234,"raw":4096,"zstd":true,"salt":"<64 hex>" or "","frames":[1234]}
//
// With keys (keys.h) a signed manifest has "sha256" for each chunk, and `,"seal":{…}` follows the body.

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

// Of the chunk that a piece lies in; each piece repeats it, so that a Systole which does not know it says so by name.
enum class Encoding { raw, zstd, encrypted, zstd_encrypted };
const char* name_of(Encoding encoding);  // "raw", "zstd", "aes-256-gcm", "zstd+aes-256-gcm"

// A part of a tensor inside a chunk file.
struct Piece {
  Box box;
  std::int64_t chunk = 0;   // index in Manifest::chunks
  std::int64_t offset = 0;  // bytes from the start of the chunk's raw bytes
  Encoding encoding = Encoding::raw;
  bool operator==(const Piece&) const = default;
};

// How the bytes of a chunk file stand for its raw ones when it is compressed or encrypted (coding.h).
struct Coding {
  Bytes raw;
  bool zstd = false;
  std::string salt;                  // 64 hex digits; empty: not encrypted
  std::vector<std::int64_t> frames;  // bytes of each in the file
  bool operator==(const Coding&) const = default;
};

struct ChunkFile {
  std::string hash;  // 32 hex digits: xxh128 of its bytes, and its file name
  Bytes bytes;       // of the file
  std::optional<Coding> coding = {};
  std::string sha256 = {};  // of the file's bytes, where the manifest is signed; else empty

  Bytes raw_bytes() const { return coding ? coding->raw : bytes; }
  Encoding encoding() const;
  bool operator==(const ChunkFile&) const = default;
};

// What a tensor is for: what is exported as the model, and what only the optimizer needs to go on.
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

// Of which run the checkpoint is: strings compared for equality by the trainer, shown to people.
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

// The text of a manifest, with the seals that the keys give (keys.h). REQUIRES: check(manifest) holds.
std::string to_text(const Manifest& manifest, const Keys* keys = nullptr);

// That a manifest's text has the seals that the keys ask for, before it is parsed. Errors: corrupt, unsupported,
// invalid.
Status check_authentic(const Keys* keys, std::string_view text, std::string_view file);

// Reads and checks. `file` names the source in errors. Errors: corrupt (hash, format, or a rule of the body does not
// hold), unsupported (a newer version, an unknown dtype or encoding, each by name).
Result<Manifest> parse_manifest(std::string_view text, std::string_view file);

// Every rule of the body: unique names, boxes inside shapes, no overlap, full coverage, pieces inside their chunks.
// Errors: invalid, naming the tensor and the piece.
Status check(const Manifest& manifest);

// Every 32-hex-digit word of a text. Retention marks with it what a manifest that cannot be read still names.
std::vector<std::string> hashes_named_in(std::string_view text);

}  // namespace systole::checkpoint
