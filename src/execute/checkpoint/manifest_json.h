#pragma once
// Chunks and tensors as the JSON of a manifest (its format stands in manifest.h), and back. A writer's part of a
// checkpoint (part.h) lists its own in the same words.

#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/manifest.h"
#include "ground/base/document.h"

namespace systole::checkpoint {

// A text as a string of JSON, in its quotes.
std::string json_text(const std::string& text);

// `"chunks":[ … ],` newline `"tensors":[ … ]`, a chunk and a tensor a line.
std::string to_json_text(std::span<const ChunkFile> chunks, std::span<const TensorEntry> tensors);

// The same out of a map that has both keys; no rule between them is checked. Errors: corrupt, invalid, not_found (a
// key); unsupported (a dtype or encoding that is not known, by name).
Status read_chunks_and_tensors(const Node& body, std::vector<ChunkFile>& chunks, std::vector<TensorEntry>& tensors);

}  // namespace systole::checkpoint
