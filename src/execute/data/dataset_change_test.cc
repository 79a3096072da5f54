#include "execute/data/dataset_change.h"

#include <gtest/gtest.h>

#include <utility>

#include "execute/data/testing/made_up_text.h"

namespace systole {
namespace {

class ChangedDataset : public testing::Test {
 protected:
  ChangedDataset() {
    put("a.txt", 1);
    put("b.txt", 2);
    options_.train = {texts_.get(), {"a.txt", "b.txt"}, ""};
    options_.held_out_fraction = 0.1;
    options_.tokenizer.vocabulary = 350;
    options_.sequence_length = 32;
    begun_ = build_dataset(*out_, options_).value().manifest;
  }

  void put(const std::string& path, std::uint64_t seed) {
    std::string text;
    for (const std::string& line : made_up_documents(400, seed)) text += line + "\n";
    write_whole(*texts_, path, text).value();
  }
  // Empty: no difference.
  std::string other() {
    const auto found = other_inputs(*out_, begun_.key, dataset_inputs(options_).value());
    return found ? found->told() : "";
  }

  std::unique_ptr<Store> texts_ = make_memory_store(), out_ = make_memory_store();
  BuildOptions options_;
  TokensManifest begun_;
};

TEST_F(ChangedDataset, OtherTextIsNamed) {
  EXPECT_EQ(other(), "");
  put("b.txt", 3);
  const std::string text = other();
  EXPECT_TRUE(text.starts_with("the text is another than the run was begun with (dataset " + begun_.key + " then, "))
      << text;
  EXPECT_TRUE(text.ends_with(" now): it is new in 'b.txt'")) << text;
  put("b.txt", 2);
  EXPECT_EQ(other(), "");
  options_.train.paths = {"a.txt"};
  EXPECT_TRUE(other().ends_with(": now without 'b.txt'")) << other();
}

TEST_F(ChangedDataset, OtherOptionsAreTold) {
  options_.tokenizer.vocabulary = 360;
  EXPECT_TRUE(other().starts_with("the tokenizer is another than")) << other();
  options_.tokenizer.vocabulary = 350;
  options_.train.paths = {"b.txt", "a.txt"};
  EXPECT_TRUE(other().starts_with("the way the text is read is another than")) << other();
  const auto empty = make_memory_store();
  EXPECT_TRUE(other_inputs(*empty, begun_.key, dataset_inputs(options_).value())
                  ->told()
                  .starts_with("the text or its tokenizer is another than"));
}

// Inputs of another version of Systole are compared by their tokens alone.
TEST_F(ChangedDataset, AnotherVersionMayMakeTheSameTokens) {
  TokensManifest older = begun_;
  older.key = "0123456789abcdef";
  older.inputs.replace(0, older.inputs.find('\n'), "systole tokens 1");
  const auto made_before = [&] {
    out_->make_dirs(older.key).value();
    write_whole(*out_, older.key + "/tokens.json", to_json(older)).value();
    return older.key;
  };
  EXPECT_FALSE(other_inputs(*out_, made_before(), dataset_inputs(options_).value()).has_value());
  EXPECT_FALSE(other_tokens(*out_, older.key, begun_).has_value());
  std::swap(older.train, older.held_out);
  EXPECT_TRUE(other_tokens(*out_, made_before(), begun_)->told().starts_with("the way the text is read is another"));
  older.tokenizer = {};
  EXPECT_TRUE(other_tokens(*out_, made_before(), begun_)->told().starts_with("the tokenizer is another"));
}

}  // namespace
}  // namespace systole
