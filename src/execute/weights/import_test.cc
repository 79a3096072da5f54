// Imports and exports the golden models of tools/oracles/make_models.py; refuses files that do not match.

#include "execute/weights/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "execute/weights/export.h"
#include "execute/weights/hf_config.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

std::unique_ptr<Store> golden(const std::string& name) {
  return open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/" + name).value();
}

ModelSpec model_of(Store& store, const std::string& more = "") {
  WorkloadOptions options;
  options.weights = [&](const std::string&) {
    return values_of_config(read_text(store, "config.json").value(), "config.json");
  };
  return read_workload("{ systole: 1, name: x, model: { weights: here" + more +
                           " }, data: { train: { files: x }, tokenizer: { vocabulary: 300 } }, "
                           "train: { batch: 1, steps: 1, optimizer: { kind: sgd, rate: 1 } } }",
                       "test.yaml", options)
      .value()
      .model;
}

// Parameters in memory, each in its own buffer.
class Parameters {
 public:
  Parameters(const NameMap& map, DType dtype) {
    for (const MappedTensor& mapped : map.tensors) {
      const Shape shape{mapped.shape.size() == 1 ? 1 : mapped.shape[0], mapped.columns};
      tensors_.push_back({mapped.ours, dtype, shape,
                          std::vector<std::byte>(static_cast<std::size_t>(bytes_of(dtype, shape).count()))});
    }
  }
  std::vector<ParameterPlace> places() {
    std::vector<ParameterPlace> all;
    for (Tensor& t : tensors_) all.push_back({t.name, t.dtype, t.shape, t.bytes});
    return all;
  }
  ParameterSource source() const {
    ParameterSource from;
    from.dtype = [this](const std::string& name) -> Result<DType> { return at(name).dtype; };
    from.shape = [this](const std::string& name) -> Result<Shape> { return at(name).shape; };
    from.read = [this](const std::string& name, const Shape&, std::span<std::byte> into) -> Status {
      std::memcpy(into.data(), at(name).bytes.data(), into.size());
      return {};
    };
    return from;
  }
  double number(const std::string& name, std::int64_t i) const {
    return load(at(name).dtype, at(name).bytes.data(), i);
  }

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  const Tensor& at(const std::string& name) const {
    for (const Tensor& t : tensors_) {
      if (t.name == name) return t;
    }
    fail(error(ErrorKind::not_found, "no '{}'", name));
  }
  std::vector<Tensor> tensors_;
};

class GoldenWeights : public testing::TestWithParam<std::string> {};

TEST_P(GoldenWeights, ComeBackBitForBit) {
  const auto store = golden(GetParam());
  const WeightFiles files = WeightFiles::open(*store, "").value();
  const NameMap map = fitting(name_map(model_of(*store)).value(), files);
  Parameters parameters(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, parameters.places()).ok());
  const auto out = make_memory_store();
  ExportOptions options;
  for (const auto& [name, tensor] : files.tensors()) options.dtypes.emplace(name, tensor.dtype);
  ASSERT_TRUE(export_weights(parameters.source(), map, *out, options).ok());
  const WeightFiles back = WeightFiles::open(*out, "").value();
  ASSERT_EQ(back.names(), files.names());
  for (const auto& [name, tensor] : files.tensors()) {
    std::vector<std::byte> a(static_cast<std::size_t>(bytes_of(tensor.dtype, tensor.shape).count())), b = a;
    ASSERT_TRUE(files.read_elements(name, 0, a).ok());
    ASSERT_TRUE(back.read_elements(name, 0, b).ok());
    EXPECT_EQ(back.tensors().at(name).dtype, tensor.dtype);
    EXPECT_EQ(a, b) << name;
  }
  if (!store->exists("model.safetensors").value()) return;
  // The export equals the file that safetensors itself writes.
  EXPECT_EQ(read_all(*out, "model.safetensors").value(), read_all(*store, "model.safetensors").value());
}

// One parameter at a time, as quantising needs them; alone, a place that is missing is an error.
TEST_P(GoldenWeights, ComeOneByOne) {
  const auto store = golden(GetParam());
  const WeightFiles files = WeightFiles::open(*store, "").value();
  const NameMap map = fitting(name_map(model_of(*store)).value(), files);
  Parameters together(map, DType::f32), apart(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, together.places()).ok());
  const std::vector<ParameterPlace> into = apart.places(), want = together.places();
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::span<const ParameterPlace> one = std::span(into).subspan(i, 1);
    EXPECT_EQ(import_weights(files, map, one).error().kind, ErrorKind::invalid);
    ASSERT_TRUE(import_weights(files, map, one, true).ok()) << into[i].name;
    EXPECT_TRUE(std::ranges::equal(into[i].bytes, want[i].bytes)) << into[i].name;
  }
}

// The device parts of each parameter, split along each dim in three. The last part may be short or empty, and is
// padded.
TEST_P(GoldenWeights, GoToTheDevicesThatHoldThem) {
  const auto store = golden(GetParam());
  const WeightFiles files = WeightFiles::open(*store, "").value();
  const NameMap map = fitting(name_map(model_of(*store)).value(), files);
  Parameters parameters(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, parameters.places()).ok());
  constexpr std::byte kUntouched{0x5A};
  for (const std::size_t dim : {0, 1, 2}) {
    for (std::int64_t device = 0; device < 3; ++device) {
      std::vector<ParameterPlace> places = parameters.places();
      std::vector<std::span<std::byte>> wholes;
      std::vector<std::vector<std::byte>> parts;
      for (ParameterPlace& place : places) {
        wholes.push_back(place.bytes);
        // As three dims where possible: heads of width 2.
        if (place.shape[1] % 2 == 0) place.shape = {place.shape[0], place.shape[1] / 2, 2};
        const std::size_t cut = std::min(dim, place.shape.size() - 1);
        checkpoint::Box box = checkpoint::Box::whole(place.shape), held = box;
        const std::int64_t size = (place.shape[cut] + 2) / 3;
        held.start[cut] = device * size;
        held.end[cut] = held.start[cut] + size;
        box.start[cut] = std::min(held.start[cut], place.shape[cut]);
        box.end[cut] = std::min(held.end[cut], place.shape[cut]);
        place.part = {box, held};
        place.bytes = parts.emplace_back(static_cast<std::size_t>(num_elements(held.shape()) * 4), kUntouched);
      }
      ASSERT_TRUE(import_weights(files, map, places).ok());
      for (std::size_t i = 0; i < places.size(); ++i) {
        const ParameterPlace& place = places[i];
        std::vector<std::byte> expected(place.bytes.size(), kUntouched);
        copy_part(place.part->box, 4, checkpoint::Box::whole(place.shape), wholes[i], place.part->held, expected);
        EXPECT_EQ(parts[i], expected) << place.name << " cut along " << dim << ", device " << device;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenWeights, testing::Values("gpt2", "llama", "llama_bf16", "t5", "t5_gated"),
                         [](const auto& name) { return name.param; });

TEST(Import, CutsWhatIsFusedAndTurnsWhatIsTurned) {
  const auto store = golden("gpt2");
  const WeightFiles files = WeightFiles::open(*store, "").value();
  const NameMap map = name_map(model_of(*store)).value();
  Parameters parameters(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, parameters.places()).ok());
  std::vector<float> fused(16 * 48);
  ASSERT_TRUE(
      files.read_elements("transformer.h.1.attn.c_attn.weight", 0, std::as_writable_bytes(std::span(fused))).ok());
  EXPECT_EQ(parameters.number("blocks.1.attn.k", 16 * 3 + 5), fused[48 * 3 + 16 + 5]);
  const auto llama = golden("llama");
  const WeightFiles theirs = WeightFiles::open(*llama, "").value();
  const NameMap llama_map = name_map(model_of(*llama)).value();
  Parameters turned(llama_map, DType::bf16);
  ASSERT_TRUE(import_weights(theirs, llama_map, turned.places()).ok());
  std::vector<float> k(8 * 16);
  ASSERT_TRUE(
      theirs.read_elements("model.layers.0.self_attn.k_proj.weight", 0, std::as_writable_bytes(std::span(k))).ok());
  EXPECT_EQ(turned.number("blocks.0.attn.k", 3 * 8 + 5), rounded(DType::bf16, k[5 * 16 + 3]));
}

TEST(Import, GivesEachT5ItsLayers) {
  const auto store = golden("t5_gated");
  const WeightFiles files = WeightFiles::open(*store, "").value();
  const NameMap map = name_map(model_of(*store)).value();
  Parameters parameters(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, parameters.places()).ok());
  const auto theirs = [&](const std::string& name, std::size_t count) {
    std::vector<float> numbers(count);
    EXPECT_TRUE(files.read_elements(name, 0, std::as_writable_bytes(std::span(numbers))).ok()) << name;
    return numbers;
  };
  const std::string block = "decoder.block.1.layer.";
  EXPECT_EQ(parameters.number("decoder.blocks.1.cross.k", 3 * 8 + 5),
            theirs(block + "1.EncDecAttention.k.weight", 8 * 12)[5 * 12 + 3]);
  EXPECT_EQ(parameters.number("decoder.blocks.1.attn.o", 3 * 12 + 5),
            theirs(block + "0.SelfAttention.o.weight", 12 * 8)[5 * 8 + 3]);
  EXPECT_EQ(parameters.number("decoder.blocks.1.mlp.gate", 3 * 20 + 5),
            theirs(block + "2.DenseReluDense.wi_0.weight", 20 * 12)[5 * 12 + 3]);
  EXPECT_EQ(parameters.number("decoder.relative_bias", 3),
            theirs("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 16)[3]);
  EXPECT_EQ(parameters.number("head", 7), theirs("lm_head.weight", 320 * 12)[7]);
}

// A file with the golden's tensors after `change`.
std::unique_ptr<Store> changed(const std::string& name,
                               const std::function<void(std::vector<checkpoint::SafetensorsSource>&)>& change) {
  const auto store = golden(name);
  const auto file = checkpoint::SafetensorsFile::open(*store, "model.safetensors").value();
  std::vector<checkpoint::SafetensorsSource> tensors;
  for (const auto& entry : file.header().tensors) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.end - entry.begin));
    EXPECT_TRUE(file.read(entry.name, bytes).ok());
    tensors.push_back({entry.name, entry.dtype, entry.shape, [bytes](const auto& take) { return take(bytes); }});
  }
  change(tensors);
  auto made = make_memory_store();
  EXPECT_TRUE(checkpoint::write_safetensors(*made, "model.safetensors", std::move(tensors), {}).ok());
  return made;
}

Status refusal(const std::function<void(std::vector<checkpoint::SafetensorsSource>&)>& change) {
  const auto made = changed("gpt2", change);
  const WeightFiles files = WeightFiles::open(*made, "").value();
  return check_weights(files, fitting(name_map(model_of(*golden("gpt2"))).value(), files));
}

// Imports with a second tensor of the embedding's size, equal to it or not.
Status imported_beside(const std::string& copy, bool equal) {
  const auto made = changed("t5", [&](auto& tensors) {
    const auto shared =
        std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == "shared.weight"; });
    std::vector<std::byte> bytes;
    EXPECT_TRUE(shared
                    ->produce([&](std::span<const std::byte> all) -> Status {
                      bytes.insert(bytes.end(), all.begin(), all.end());
                      return {};
                    })
                    .ok());
    if (!equal) bytes.back() ^= std::byte{1};
    tensors.push_back({copy, DType::f32, {320, 12}, [bytes](const auto& take) { return take(bytes); }});
  });
  const WeightFiles files = WeightFiles::open(*made, "").value();
  const NameMap map = name_map(model_of(*golden("t5"))).value();
  Parameters parameters(map, DType::f32);
  return import_weights(files, map, parameters.places());
}

TEST(Import, TakesCopiesOfTheEmbeddingThatAreCopies) {
  for (const char* copy : {"lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
    EXPECT_TRUE(imported_beside(copy, true).ok()) << copy;
    const Status other = imported_beside(copy, false);
    ASSERT_FALSE(other.ok()) << copy;
    EXPECT_EQ(other.error().message,
              std::string("tensor '") + copy + "' is not equal to 'shared.weight', and config.json makes them one");
  }
  const auto old = changed("t5", [](auto& tensors) {
    const std::vector<std::byte> bytes(8 * 2 * 4);
    tensors.push_back({"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                       DType::f32,
                       {8, 2},
                       [bytes](const auto& take) { return take(bytes); }});
  });
  EXPECT_TRUE(check_weights(WeightFiles::open(*old, "").value(), name_map(model_of(*golden("t5"))).value()).ok());
}

checkpoint::SafetensorsSource zeros(const std::string& name, DType dtype, Shape shape) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(dtype, shape).count()));
  return {name, dtype, std::move(shape), [bytes](const auto& take) { return take(bytes); }};
}

TEST(Import, NamesWhatDoesNotFit) {
  EXPECT_TRUE(refusal([](auto&) {}).ok());
  const auto at = [](auto& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  };
  const Status missing =
      refusal([&](auto& t) { at(t, "transformer.h.1.ln_2.bias")->name = "transformer.h.1.ln_two.bias"; });
  EXPECT_EQ(missing.error().message, "tensor 'transformer.h.1.ln_2.bias' ([16]) is missing");
  EXPECT_EQ(missing.error().hint, "did you mean 'transformer.h.1.ln_two.bias'?");
  ASSERT_EQ(missing.error().others.size(), 1u);
  EXPECT_EQ(missing.error().others[0].message, "tensor 'transformer.h.1.ln_two.bias' ([16]) is no part of this model");
  const Status shape = refusal([&](auto& t) {
    *at(t, "transformer.wpe.weight") = zeros("transformer.wpe.weight", DType::f32, {64, 8});
  });
  EXPECT_EQ(shape.error().message, "tensor 'transformer.wpe.weight' is [64, 8], the model's keys make it [64, 16]");
  const Status type =
      refusal([&](auto& t) { *at(t, "transformer.ln_f.bias") = zeros("transformer.ln_f.bias", DType::i32, {16}); });
  EXPECT_EQ(type.error().kind, ErrorKind::unsupported);
  EXPECT_EQ(type.error().message, "tensor 'transformer.ln_f.bias' is i32[16], which is no type of weights");
  const Status masks = refusal([&](auto& t) {
    t.push_back(zeros("transformer.h.0.attn.bias", DType::u8, {1, 1, 64, 64}));
    t.push_back(zeros("lm_head.weight", DType::f32, {304, 16}));
  });
  EXPECT_TRUE(masks.ok()) << masks.error().message;
}

TEST(Import, AsksForTheTieWhereTheHeadIsMissing) {
  const auto without_head = [](const std::string& name, bool embedding_too) {
    const auto made = changed(name, [&](auto& tensors) {
      std::erase_if(tensors, [&](const auto& t) {
        return t.name == "lm_head.weight" || (embedding_too && t.name.ends_with("embed_tokens.weight"));
      });
    });
    const WeightFiles files = WeightFiles::open(*made, "").value();
    return check_weights(files, fitting(name_map(model_of(*golden(name))).value(), files)).error();
  };
  for (const char* name : {"llama", "t5_gated"}) {
    const Error missing = without_head(name, false);
    EXPECT_TRUE(missing.message.starts_with("tensor 'lm_head.weight' (")) << missing.message;
    EXPECT_EQ(missing.hint, R"(where the head is the embedding: "tie_word_embeddings": true in config.json)") << name;
  }
  EXPECT_EQ(without_head("llama", true).hint, "the weights are of a smaller model, or incomplete");
}

TEST(Import, ReadsTheHeadOutOfTheEmbedding) {
  const auto made = changed("t5_gated", [](auto& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.name == "lm_head.weight"; });
  });
  const WeightFiles files = WeightFiles::open(*made, "").value();
  const NameMap map = with_head_of_embedding(name_map(model_of(*golden("t5_gated"))).value());
  Parameters parameters(map, DType::f32);
  ASSERT_TRUE(import_weights(files, map, parameters.places()).ok());
  for (const std::size_t at : {0u, 7u, 320u * 12u - 1}) {
    EXPECT_NE(parameters.number("head", at), 0);
    EXPECT_EQ(parameters.number("head", at), parameters.number("embed.tokens", at));
  }
}

TEST(NameMap, RefusesWhatTheFamilyIsNot) {
  ModelSpec model = model_of(*golden("gpt2"));
  model.as<DecoderSpec>().norm = Norm::rms;
  EXPECT_EQ(name_map(model).error().message, "Hugging Face's GPT-2 has no such model: model.norm is not layer");
  model = model_of(*golden("llama"));
  EXPECT_TRUE(name_map(model).ok());
  model.as<DecoderSpec>().window = 8;
  EXPECT_EQ(name_map(model).error().message, "Hugging Face's Llama has no such model: model.window is not 0");
  model = model_of(*golden("t5_gated"));
  EXPECT_TRUE(name_map(model).ok());
  model.as<T5Spec>().activation = Activation::gelu;
  EXPECT_EQ(name_map(model).error().message,
            "Hugging Face's T5 has no such model: model.activation is not gelu_tanh where gated");
  model.family = MlpSpec();
  EXPECT_EQ(name_map(model).error().kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace systole
