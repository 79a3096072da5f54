#include "execute/weights/pooling_files.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Result<std::optional<PoolingSpec>> pooling_with(const std::string& config, const std::string& modules = "") {
  const auto store = make_memory_store();
  store->make_dirs("1_Pooling").value();
  write_whole(*store, "1_Pooling/config.json", config).value();
  if (!modules.empty()) write_whole(*store, "modules.json", modules).value();
  return pooling_of(*store);
}

std::string modules(const std::string& last) {
  return R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
             {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
             {"idx": 2, "path": "2_Last", "type": "sentence_transformers.models.)" +
         last + "\"}]";
}

TEST(PoolingFiles, say_how_vectors_are_made) {
  EXPECT_FALSE(pooling_of(*make_memory_store()).value());
  const char* mean = R"({"word_embedding_dimension": 384, "pooling_mode_cls_token": false,
                         "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false})";
  EXPECT_EQ(pooling_with(mean).value()->pooling, Pooling::mean);
  EXPECT_TRUE(pooling_with(mean).value()->normalize);
  EXPECT_TRUE(pooling_with(mean, modules("Normalize")).value()->normalize);
  EXPECT_FALSE(pooling_with(mean, "[]").value()->normalize);
  EXPECT_EQ(pooling_with(R"({"pooling_mode_cls_token": true})").value()->pooling, Pooling::cls);
  EXPECT_EQ(pooling_with(R"({"pooling_mode_lasttoken": true})").value()->pooling, Pooling::last);
  EXPECT_EQ(pooling_with(R"({"pooling_mode": "lasttoken"})").value()->pooling, Pooling::last);
  EXPECT_EQ(pooling_with(R"({"pooling_mode": "cls"})").value()->pooling, Pooling::cls);
}

TEST(PoolingFiles, what_is_not_followed_is_refused_by_name) {
  const auto refused = [](const std::string& config, const std::string& more, ErrorKind kind, const std::string& name) {
    const auto pooling = pooling_with(config, more);
    ASSERT_FALSE(pooling.ok()) << config << more;
    EXPECT_EQ(pooling.error().kind, kind) << pooling.error().message;
    EXPECT_NE(pooling.error().message.find(name), std::string::npos) << pooling.error().message;
  };
  const char* mean = R"({"pooling_mode_mean_tokens": true})";
  refused(mean, modules("Dense"), ErrorKind::unsupported, "Dense");
  refused(R"({"pooling_mode_max_tokens": true})", "", ErrorKind::unsupported, "max");
  refused(R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})", "", ErrorKind::unsupported, "max");
  refused(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})", "", ErrorKind::unsupported,
          "several");
  refused(R"({"pooling_mode": "weightedmean"})", "", ErrorKind::unsupported, "weightedmean");
  refused("{}", "", ErrorKind::corrupt, "no pooling");
  refused("[]", "", ErrorKind::corrupt, "");
  refused("{", "", ErrorKind::corrupt, "");
  refused(mean, "{", ErrorKind::corrupt, "");
  refused(mean, "{}", ErrorKind::corrupt, "list");
}

}  // namespace
}  // namespace systole
