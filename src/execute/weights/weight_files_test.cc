#include "execute/weights/weight_files.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

void write(Store& store, const std::string& file, const std::vector<std::string>& tensors) {
  static const std::vector<std::byte> bytes(8);
  std::vector<checkpoint::SafetensorsSource> sources;
  for (const std::string& name : tensors)
    sources.push_back(checkpoint::SafetensorsSource::of(name, DType::f32, {2}, bytes));
  ASSERT_TRUE(checkpoint::write_safetensors(store, file, std::move(sources), {}).ok());
}

TEST(WeightFiles, ReadsOneFileOrWhatTheIndexNames) {
  const auto store = make_memory_store();
  EXPECT_EQ(WeightFiles::open(*store, "").error().kind, ErrorKind::not_found);
  write(*store, "a.safetensors", {"x", "y"});
  write(*store, "b.safetensors", {"z"});
  const auto index = [&](const std::string& map) {
    EXPECT_TRUE(write_whole(*store, "model.safetensors.index.json", "{\"weight_map\": " + map + "}").ok());
    return WeightFiles::open(*store, "");
  };
  const auto all = index(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"})");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->names(), (std::vector<std::string>{"x", "y", "z"}));
  const Hash128 before = all->hash().value();
  EXPECT_EQ(index(R"({"x": "a.safetensors", "z": "b.safetensors"})").error().message, "tensor 'y' is not in the index");
  EXPECT_EQ(index(R"({"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"})").error().message,
            "tensor 'x' is not in 'b.safetensors', where the index has it");
  EXPECT_EQ(index(R"({"x": "../a.safetensors"})").error().message,
            "tensor 'x' would lie in '../a.safetensors', which is no name of a file in this folder");
  EXPECT_EQ(index(R"({"x": "gone.safetensors"})").error().kind, ErrorKind::not_found);
  EXPECT_EQ(index("[]").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(index("{").error().kind, ErrorKind::corrupt);
  write(*store, "b.safetensors", {"z", "x"});
  EXPECT_EQ(index(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"})").error().message,
            "tensor 'x' stands in two files");
  write(*store, "model.safetensors", {"x"});
  EXPECT_EQ(WeightFiles::open(*store, "").value().names(), (std::vector<std::string>{"x"}));
  EXPECT_NE(WeightFiles::open(*store, "").value().hash().value(), before);
}

}  // namespace
}  // namespace systole
