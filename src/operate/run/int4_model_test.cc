// A GGUF file's Q4_0 and Q4_1 served in int4 are the numbers of the file, to the bit, and so are those of a folder that is
// packed of it.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "execute/weights/testing/gguf_of_four_bits.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "operate/run/quantize_model.h"

namespace systole {
namespace {

constexpr const char* kText = "All human beings are born free and equal in dignity and rights. ";

class Int4Model : public testing::Test {
 protected:
  std::string file(bool minima) const {
    const std::string path = folder_.path() + (minima ? "/q4_1.gguf" : "/q4_0.gguf");
    std::ofstream(path, std::ios::binary)
        << gguf_of_four_bits(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama", minima);
    return path;
  }
  std::unique_ptr<Engine> engine(const std::string& path, DType parameter) const {
    return open_engine(find_model(path).value(), machine_, {.cache = 32, .parameter = parameter}).value();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Clock> clock_ = real_clock();
  const Machine machine_ = open_machine("reference", {}, *clock_).value();
};

std::span<const std::byte> layer_of(Engine& engine, const std::string& name, std::int64_t layer, std::int64_t layers) {
  const std::span<const std::byte> all = engine.executor().view(engine.program().value_named(name), 0);
  const std::size_t size = all.size() / static_cast<std::size_t>(layers);
  return all.subspan(static_cast<std::size_t>(layer) * size, size);
}

// Counts the elements of all weights in int4 that are not those of the same engine in f32.
std::int64_t num_apart(Engine& int4, Engine& f32) {
  std::int64_t apart = 0, seen = 0;
  for (const Int8Weight& weight : int4.int8_weights()) {
    if (weight.bits != 4) continue;
    const Shape shape = weight.tensor().shape;
    const std::int64_t layers = weight.stacked ? weight.from.type.size(0) : 1, size = num_elements(shape);
    const auto strides = strides_of(shape);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const auto codes = layer_of(int4, weight.q8_name(), layer, layers),
                 scales = layer_of(int4, weight.scale_name(), layer, layers),
                 wide = layer_of(f32, weight.from.name, layer, layers);
      for (std::int64_t i = 0; i < size; ++i) {
        std::int64_t row = 0, column = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          const auto dim = static_cast<std::size_t>(weight.order[d]);
          std::int64_t& index = static_cast<int>(d) < weight.outputs ? row : column;
          index = index * shape[dim] + i / strides[dim] % shape[dim];
        }
        const Int4Block block = block_at(weight.columns(), row, column / 32,
                                         {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                                         {reinterpret_cast<const std::uint16_t*>(scales.data()), scales.size() / 2});
        const auto want = static_cast<float>(load(DType::f32, wide.data(), i));
        apart += value_of(block, static_cast<std::size_t>(column % 32)) == want ? 0 : 1;
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 2 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 96 * 3)) << "all matrices of both layers";
  return apart;
}

TEST_F(Int4Model, of_a_gguf_file_has_its_numbers_and_a_folder_packed_of_it_its_bytes) {
  for (const bool minima : {true, false}) {
    SCOPED_TRACE(minima ? "Q4_1" : "Q4_0");
    const std::string path = file(minima), out = folder_.path() + (minima ? "/packed1" : "/packed0");
    const auto int4 = engine(path, kInt4), f32 = engine(path, DType::f32);
    EXPECT_EQ(num_apart(*int4, *f32), 0);
    const QuantizedModel made =
        quantize_model(find_model(path).value(), machine_, {.out = out, .text = kText, .parameter = kInt4, .limit = 20})
            .value();
    ASSERT_TRUE(made.written) << made.percent;
    const ServedModel served = find_model(out).value();
    EXPECT_EQ(served.parameter, kInt4);
    const auto packed = open_engine(served, machine_, {.cache = 32}).value();
    EXPECT_EQ(packed->options().parameter, kInt4);
    for (const ProgramValue& value : int4->program().values) {
      if (value.residence != Residence::parameter) continue;
      const auto want = layer_of(*int4, value.name, 0, 1), got = layer_of(*packed, value.name, 0, 1);
      EXPECT_TRUE(std::ranges::equal(want, got)) << value.name;
    }
    const auto int8 = open_engine(served, machine_, {.cache = 32, .parameter = DType::i8});
    ASSERT_FALSE(int8.ok());
    EXPECT_NE(int8.error().message.find("is packed in int4, of which no weights in int8"), std::string::npos)
        << int8.error().message;
  }
}

}  // namespace
}  // namespace systole
