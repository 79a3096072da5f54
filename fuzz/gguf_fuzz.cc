// Any bytes as a GGUF file. Tensors that are taken must lie in the file, one behind another, and be readable as the
// model's; the metadata must make a config and a tokenizer, or be refused.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "execute/weights/gguf/gguf_model.h"
#include "execute/weights/gguf/gguf_tokenizer.h"
#include "execute/weights/hf_config.h"

using namespace systole;

namespace {

void read_rows(const WeightFiles& files) {
  for (const auto& [name, tensor] : files.tensors()) {
    const std::int64_t width = tensor.shape.back(), rows = num_elements(tensor.shape) / width;
    std::vector<std::byte> row(static_cast<std::size_t>(width * size_of(tensor.dtype)));
    for (const std::int64_t at : {std::int64_t{0}, rows - 1}) {
      if (!files.read_elements(name, at * width, row)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto store = make_memory_store();
  if (!write_whole(*store, "fuzz.gguf", std::as_bytes(std::span(data, size)))) std::abort();
  auto file = GgufFile::open(*store, "fuzz.gguf");
  if (!file) return 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const GgufTensor& tensor : file->tensors()) places.emplace_back(tensor.begin, tensor.end);
  std::sort(places.begin(), places.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : places) {
    if (begin < at || end < begin || end > static_cast<std::int64_t>(size)) std::abort();
    at = end;
  }
  if (const auto config = config_of_gguf(*file)) (void)values_of_config(*config, "fuzz");
  if (auto tokenizer = tokenizer_of_gguf(*file); tokenizer && tokenizer->family == TokenizerFamily::byte_level_bpe) {
    if (const auto loaded = Tokenizer::load(std::move(tokenizer->model))) {
      std::vector<std::int32_t> tokens;
      Encoder(*loaded).encode("a text", tokens);
      if (loaded->decode(tokens).value() != "a text") std::abort();
    }
  }
  if (const auto files = weights_of_gguf(std::move(*file), *store, "fuzz.gguf")) read_rows(*files);
  return 0;
}
