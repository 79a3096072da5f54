#pragma once
// Chunks and tensors to and from the JSON of a manifest (format: manifest.h). A writer's part of a checkpoint (part.h)
// uses the same JSON.

#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/manifest.h"
#include "ground/base/document.h"

namespace systole::checkpoint {

// `text` as a quoted JSON string.
std::string json_text(const std::string& text);

// `"chunks":[ … ],` newline `"tensors":[ … ]`, one line per chunk and per tensor.
std::string to_json_text(std::span<const ChunkFile> chunks, std::span<const TensorEntry> tensors);

// Reads both keys from a map; does not check rules between them. Errors: corrupt, invalid, not_found (a key),
// unsupported (an unknown dtype or encoding, by name).
Status read_chunks_and_tensors(const Node& body, std::vector<ChunkFile>& chunks, std::vector<TensorEntry>& tensors);

}  // namespace systole::checkpoint
